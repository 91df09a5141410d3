"""The app of the floor `face`: pages that are open hear of what is saved and of who leaves."""

from django.apps import AppConfig


class FaceConfig(AppConfig):
    """Has no tables."""

    name = "spakweb.face"
    label = "face"

    def ready(self) -> None:
        from spakweb.face.editor import presence  # noqa: F401  it listens
