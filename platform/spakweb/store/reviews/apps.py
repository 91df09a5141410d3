"""The app `reviews`."""

from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    """The app of patches and their reviews."""

    name = "spakweb.store.reviews"
    label = "reviews"
