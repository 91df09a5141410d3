from __future__ import annotations

from django.apps import AppConfig


class EditorConfig(AppConfig):
    """The app of the editor."""

    name = "spakweb.editor"

    def ready(self) -> None:
        """Whoever has a spec open hears of each new version, whichever way it was saved."""
        from django.contrib.sessions.models import Session
        from django.db.models.signals import post_delete, post_save

        from spakweb.editor.presence import announce_version, look
        from spakweb.specs.models import SpecVersion
        from spakweb.teams.models import Membership

        post_save.connect(announce_version, sender=SpecVersion, dispatch_uid="spak-editor-presence")
        for ends in (Membership, Session):
            post_delete.connect(look, sender=ends, dispatch_uid=f"spak-editor-look-{ends.__name__}")
