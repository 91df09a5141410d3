from __future__ import annotations

from django.apps import AppConfig


class EditorConfig(AppConfig):
    name = "spakweb.editor"

    def ready(self) -> None:
        """Whoever has a spec open hears of each new version, whichever way it was saved."""
        from django.db.models.signals import post_save

        from spakweb.editor.presence import tell
        from spakweb.specs.models import SpecVersion

        post_save.connect(tell, sender=SpecVersion, dispatch_uid="spak-editor-presence")
