"""The app `reviews`."""

from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    """The app of patches and their reviews."""

    name = "spakweb.reviews"
    label = "reviews"

    def ready(self) -> None:
        from spakweb.reviews import history
        from spakweb.specs.actions import tag_moved

        tag_moved.connect(history.of_tag, dispatch_uid="reviews.history")
