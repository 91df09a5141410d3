"""The app `reviews`."""

from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    name = "spakweb.reviews"
    label = "reviews"
