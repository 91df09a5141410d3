"""The documents of the API: what is taken and given, as serializers, from which the schema is made."""

from __future__ import annotations

from typing import Any

from django.db.models import prefetch_related_objects
from rest_framework import serializers

from spakweb.face.api.documents import Address, Document, Moment, listing
from spakweb.face.streams.summaries import HEADER, list_row
from spakweb.ground import access, clock
from spakweb.ground.teams.models import Team
from spakweb.store.runs.models import SANDBOXES, Run
from spakweb.store.sources.models import Source
from spakweb.store.specs.models import Spec
from spakweb.store.specs.reach import hides

TEXT_BYTES = 512 << 10
"""Of a text of a spec, in requests."""


RUN_COLUMNS = (
    *HEADER,
    *(
        "mode",
        "backend",
        "sandbox",
        "takes_in",
        "inputs",
        "head",
        "deleted_at",
        "files__root",
        "parent__key",
        "parent_seq",
    ),
    *("version__spec__slug", "version__number", "version__content_hash", "team__slug", "own__spec__slug"),
    *("begun_from__name", "begun_from__url", "begun_from__ref", "begun_from__commit"),
)


class TeamShape(Document):
    """A team that the token reaches."""

    slug = serializers.CharField()
    name = serializers.CharField()
    role = serializers.CharField(help_text="The role that the token acts with.")
    html_url = Address("spak-team-home", "slug")

    def get_role(self, team: Team) -> str:
        """The role of the person whose token it is."""
        return str(access.member_role(self.context["request"].user, team))


Teams = listing("Teams", TeamShape, "All of them.")


class SpecShape(Document):
    """A spec; `head` is its newest version."""

    slug = serializers.CharField()
    name = serializers.CharField()
    head = serializers.IntegerField(source="head.number")
    hash = serializers.CharField(source="head.content_hash")
    tags = serializers.DictField(child=serializers.IntegerField())
    protected = serializers.BooleanField()
    archived = serializers.BooleanField()
    html_url = Address("spak-spec-detail", "team.slug", "slug")

    def get_tags(self, spec: Spec) -> dict[str, int]:
        """The number of each tag's version."""
        prefetch_related_objects([spec], "tags__version")
        return {tag.name: tag.version.number for tag in spec.tags.all()}

    def get_protected(self, spec: Spec) -> bool:
        """Whether it takes no version without an approval."""
        return spec.review_rules.approvals > 0

    def get_archived(self, spec: Spec) -> bool:
        """Whether somebody put it away."""
        return spec.archived_at is not None


Specs = listing(
    "Specs", SpecShape, "A page of specs, by slug; `next` is the address of the page after it.", pages=True
)


class VersionShape(Document):
    """A version of a spec with its text."""

    number = serializers.IntegerField()
    hash = serializers.CharField(source="content_hash")
    message = serializers.CharField()
    author = serializers.CharField(
        source="writer", help_text="Who wrote it; of a merged patch who proposed it."
    )
    merged_by = serializers.CharField(help_text="Who merged the patch that it is from; else empty.")
    made_at = Moment()
    text = serializers.CharField()


class CheckRequest(serializers.Serializer):
    """A text of a spec."""

    text = serializers.CharField(max_length=TEXT_BYTES, trim_whitespace=False, allow_blank=True)


class Finding(Document):
    """What `spak check` says of a place of the text; lines and columns begin with 1."""

    code = serializers.CharField()
    severity = serializers.CharField()
    message = serializers.CharField()
    hint = serializers.CharField()
    line = serializers.IntegerField()
    column = serializers.IntegerField()


class Checked(Document):
    """`ok` holds when no finding is an error."""

    ok = serializers.BooleanField()
    findings = Finding(many=True)


class FromSource(serializers.Serializer):
    """A source of the team and what of it a run begins with."""

    name = serializers.CharField(max_length=40)
    ref = serializers.CharField(
        required=False, max_length=200, help_text="A branch or a tag; else the source's usual one."
    )
    commit = serializers.CharField(
        required=False, max_length=64, help_text="The ref has to be at this commit, else the run fails."
    )


class StartRequest(serializers.Serializer):
    """What a run begins with; all has a default."""

    not_both = (("version", "tag"), ("text", "version"), ("text", "tag"), ("files", "source"))

    version = serializers.IntegerField(
        required=False, min_value=1, help_text="Else the tag, else the newest."
    )
    tag = serializers.CharField(required=False, max_length=40)
    text = serializers.CharField(
        required=False,
        max_length=TEXT_BYTES,
        trim_whitespace=False,
        help_text="A text of a spec, instead of a version. Needs the scope edit too.",
    )
    inputs = serializers.DictField(child=serializers.CharField(allow_blank=True), required=False)
    labels = serializers.ListField(child=serializers.CharField(), required=False)
    mode = serializers.CharField(required=False, max_length=12)
    backend = serializers.CharField(required=False, max_length=40)
    queue = serializers.RegexField(r"^[A-Za-z0-9._-]{1,60}$", required=False)
    sandbox = serializers.ChoiceField([one for one in SANDBOXES if one], required=False)
    files = serializers.CharField(
        required=False, max_length=43, help_text='The hash of an upload; "none" for an empty workspace.'
    )
    source = FromSource(required=False, help_text="Instead of files: a worker fetches them from git.")
    prior = serializers.CharField(
        required=False, max_length=128, help_text="The id of an earlier run of the team with the same SPACE."
    )
    sealed = serializers.CharField(
        required=False, max_length=141,
        help_text="SUITE/CASE: the case whose sealed checks judge what the run made, once, at its end.",
    )  # fmt: skip


class KeptFilesRequest(serializers.Serializer):
    """Files that were brought."""

    files = serializers.CharField(max_length=43, help_text='The hash of an upload, or "none".')


class SourceRequest(serializers.Serializer):
    """A git repository. A token goes with https; a source of ssh gets a deploy key."""

    name = serializers.CharField(max_length=40)
    url = serializers.CharField(max_length=2000)
    refs = serializers.ListField(
        child=serializers.CharField(max_length=200), help_text="What runs may begin from: main, release/*."
    )
    token = serializers.CharField(required=False, max_length=4000, write_only=True)
    login = serializers.CharField(
        required=False, max_length=100, help_text="The name that goes with the token."
    )
    host_keys = serializers.CharField(
        required=False, max_length=40_000, help_text="Of ssh: the host's public keys, a line each."
    )
    submodules = serializers.BooleanField(required=False, help_text="Take it without its submodules.")
    lfs = serializers.BooleanField(required=False, help_text="Take pointers of Git LFS as they are.")
    forge = serializers.ChoiceField(
        ["github", "gitlab"], required=False, help_text="Whose API opens pull requests."
    )
    api_url = serializers.CharField(
        required=False, max_length=2000, help_text="Where that API is, if not at its usual place."
    )
    api_token = serializers.CharField(
        required=False, max_length=4000, write_only=True, help_text="Of that API; else the token is used."
    )


class CredentialsRequest(serializers.Serializer):
    """A new token; a source of ssh takes none and gets a new deploy key."""

    token = serializers.CharField(required=False, allow_blank=True, max_length=4000, write_only=True)
    login = serializers.CharField(required=False, max_length=100)
    api_token = serializers.CharField(
        required=False, max_length=4000, write_only=True, help_text="Changes this one alone."
    )


class SourceShape(Document):
    """A source. Its credentials are never given; `public_key` is for the repository's host."""

    name = serializers.CharField()
    url = serializers.CharField()
    refs = serializers.ListField(source="patterns", child=serializers.CharField())
    credentials = serializers.ChoiceField(["none", "token", "deploy_key"])
    public_key = serializers.CharField()
    submodules = serializers.BooleanField()
    lfs = serializers.BooleanField()
    forge = serializers.CharField(help_text="github, gitlab, or empty.")
    api_url = serializers.CharField(help_text="Empty: the API is at its usual place.")
    made_by = serializers.CharField()
    made_at = Moment()
    rotated_at = Moment(allow_null=True)

    def get_credentials(self, source: Source) -> str:
        """What kind it has."""
        return "deploy_key" if source.public_key else "token" if source.sealed else "none"


Sources = listing("Sources", SourceShape, "All sources of a team, by name.")


class BranchRequest(serializers.Serializer):
    """A branch for what a run changed."""

    name = serializers.CharField(required=False, max_length=200, help_text="It begins with spak/.")
    title = serializers.CharField(required=False, max_length=100, help_text="What its commit says.")
    pull = serializers.BooleanField(required=False, help_text="Open a pull request with it.")


class BranchShape(Document):
    """A branch of a run: asked, approved, pushed, failed or declined. People approve it on the run's page."""

    name = serializers.CharField()
    title = serializers.CharField()
    state = serializers.CharField()
    commit = serializers.CharField(help_text="Empty until it is pushed.")
    error = serializers.CharField()
    pull = serializers.BooleanField(help_text="Whether a pull request is opened with it.")
    pull_url = serializers.CharField(help_text="Empty until it is open.")
    asked_by = serializers.CharField()
    decided_by = serializers.CharField(allow_null=True)


Branches = listing("Branches", BranchShape, "Branches of a run, the newest first.")


class BegunFrom(Document):
    """Where a run's files come from; `commit` is empty until a worker has fetched them."""

    name = serializers.CharField(source="begun_from__name")
    url = serializers.CharField(source="begun_from__url")
    ref = serializers.CharField(source="begun_from__ref")
    commit = serializers.CharField(source="begun_from__commit")


class UploadShape(Document):
    """Files that runs of the team may begin with."""

    hash = serializers.CharField(source="root")
    name = serializers.CharField()
    files = serializers.IntegerField()
    bytes = serializers.IntegerField(source="size")


class RunShape(Document):
    """A run as it is now."""

    key = serializers.CharField()
    team = serializers.CharField(source="team__slug")
    spec = serializers.CharField(allow_null=True)
    version = serializers.IntegerField(source="version__number", allow_null=True)
    spec_hash = serializers.CharField(source="version__content_hash", allow_null=True)
    name = serializers.CharField()
    state = serializers.CharField()
    ended = serializers.BooleanField()
    checked = serializers.BooleanField(allow_null=True, help_text="Whether anything checked a result.")
    by_own_tests = serializers.ListField(
        child=serializers.CharField(),
        help_text="Of a run that succeeded: changed paths without which its check fails.",
    )
    reason = serializers.CharField(help_text="Codes of why it ended or waits.")
    why = serializers.CharField()
    task = serializers.CharField(help_text="Empty where the token does not see the text that it runs.")
    asks = serializers.CharField(help_text="The id of what it waits for; empty: nothing.")
    records = serializers.IntegerField(source="count")
    head = serializers.CharField(help_text="The hash of its last record.")
    steps = serializers.IntegerField()
    tokens = serializers.DictField()
    cost_nanousd = serializers.IntegerField(source="cost")
    mode = serializers.CharField()
    backend = serializers.CharField()
    queue = serializers.CharField()
    inputs = serializers.DictField()
    labels = serializers.ListField(child=serializers.CharField())
    trial = serializers.CharField(help_text="experiment or campaign, of a run of one; else empty.")
    agent = serializers.CharField(help_text="The agent of a guarded session; else empty.")
    files = serializers.CharField(source="files__root", allow_null=True)
    source = BegunFrom(allow_null=True)
    made_at = Moment()
    started_at = Moment()
    ended_at = Moment()
    deleted_at = Moment(allow_null=True, help_text="When people deleted it: of `deleted=1` alone.")
    url = Address("spak-api-run", "team__slug", "key")
    html_url = Address("spak-run", "team__slug", "key")

    def to_representation(self, row: Any) -> dict[str, Any]:
        """The document of a row of `.values(*RUN_COLUMNS)`, or of a run as the database has it now."""
        if isinstance(row, Run):
            row = Run.objects.filter(pk=row.pk).values(*RUN_COLUMNS).get()
        return super().to_representation({**row, **list_row(row, clock.now())})

    def get_spec(self, row: dict[str, Any]) -> str | None:
        """The spec of its version, or of its own text."""
        return row["version__spec__slug"] or row["own__spec__slug"]

    def get_ended(self, row: dict[str, Any]) -> bool:
        """Whether it has."""
        return bool(row["ended_at"])

    def get_task(self, row: dict[str, Any]) -> str:
        """Where it is, for a reader who sees its text."""
        return "" if hides(self.context["request"].user, row["takes_in"]) else str(row["task"])

    def get_source(self, row: dict[str, Any]) -> dict[str, Any] | None:
        """The row again, where its files come from a source."""
        return row if row["begun_from__name"] else None


Runs = listing(
    "Runs",
    RunShape,
    "A page of runs, the newest first; `next` is the address of the page after it.",
    pages=True,
)


class Records(Document):
    """Records in order, each as the ledger has it. `next` is the address of those after them, null when the
    run has ended and all were given."""

    records = serializers.ListField(child=serializers.DictField())
    next = serializers.CharField(allow_null=True)


class ExtendRequest(serializers.Serializer):
    """More of a budget of a run that is under way."""

    budget = serializers.ChoiceField(choices=["steps", "elapsed_ms", "tokens", "cost"])
    by = serializers.IntegerField(min_value=1, help_text="In the unit of the budget; cost in micro-dollars.")


class AnswerRequest(serializers.Serializer):
    """An answer to what the run waits for; `of` is the `asks` of the run."""

    of = serializers.CharField(max_length=200)
    text = serializers.CharField(trim_whitespace=False, allow_blank=True)
