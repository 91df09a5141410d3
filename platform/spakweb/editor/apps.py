from __future__ import annotations

from django.apps import AppConfig


class EditorConfig(AppConfig):
    name = "spakweb.editor"

    def ready(self) -> None:
        """Whoever has a spec open hears of each new version, whichever way it was saved."""
        from django.db.models.signals import post_delete, post_save

        from spakweb.editor.presence import look, tell
        from spakweb.specs.models import SpecVersion
        from spakweb.teams.models import Membership

        post_save.connect(tell, sender=SpecVersion, dispatch_uid="spak-editor-presence")
        post_delete.connect(look, sender=Membership, dispatch_uid="spak-editor-look")
