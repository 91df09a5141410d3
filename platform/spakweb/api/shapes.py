"""The documents of the API: what is taken and given, as serializers, from which the schema is made."""

from __future__ import annotations

from typing import Any, Protocol

from django.db.models import prefetch_related_objects
from django.urls import reverse
from rest_framework import serializers

from spakweb import clock
from spakweb.live.summaries import HEADER, list_row
from spakweb.runs.models import SANDBOXES, Run
from spakweb.sources.models import Branch, Source
from spakweb.specs.models import Spec, SpecVersion
from spakweb.specs.reach import hides

TEXT_BYTES = 512 << 10
"""Of a text of a spec, in requests."""


class Builds(Protocol):
    """A request, of Django or of the framework, as far as addresses go."""

    @property
    def user(self) -> Any:
        """Who asks."""

    def build_absolute_uri(self, location: str) -> str:
        """The whole address."""


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


class TeamShape(serializers.Serializer):
    """A team that the token reaches."""

    slug = serializers.CharField()
    name = serializers.CharField()
    role = serializers.CharField(help_text="The role that the token acts with.")
    html_url = serializers.CharField()


class Teams(serializers.Serializer):
    """All of them."""

    teams = TeamShape(many=True)


class SpecShape(serializers.Serializer):
    """A spec; `head` is its newest version."""

    slug = serializers.CharField()
    name = serializers.CharField()
    head = serializers.IntegerField()
    hash = serializers.CharField()
    tags = serializers.DictField(child=serializers.IntegerField())
    protected = serializers.BooleanField()
    archived = serializers.BooleanField()
    html_url = serializers.CharField()


class Specs(serializers.Serializer):
    """A page of specs, by slug; `next` is the address of the page after it."""

    specs = SpecShape(many=True)
    next = serializers.CharField(allow_null=True)


class VersionShape(serializers.Serializer):
    """A version of a spec with its text."""

    number = serializers.IntegerField()
    hash = serializers.CharField()
    message = serializers.CharField()
    author = serializers.CharField()
    made_at = serializers.CharField()
    text = serializers.CharField()


class CheckRequest(serializers.Serializer):
    """A text of a spec."""

    text = serializers.CharField(max_length=TEXT_BYTES, trim_whitespace=False, allow_blank=True)


class Finding(serializers.Serializer):
    """What `spak check` says of a place of the text; lines and columns begin with 1."""

    code = serializers.CharField()
    severity = serializers.CharField()
    message = serializers.CharField()
    hint = serializers.CharField()
    line = serializers.IntegerField()
    column = serializers.IntegerField()


class Checked(serializers.Serializer):
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

    def to_internal_value(self, data: Any) -> Any:
        """Raises: ValidationError for a member that there is not."""
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            raise serializers.ValidationError({"source": f"There is no member {unknown[0][:60]!r}."})
        return super().to_internal_value(data)


class StartRequest(serializers.Serializer):
    """What a run begins with; all has a default."""

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


class SourceShape(serializers.Serializer):
    """A source. Its credentials are never given; `public_key` is for the repository's host."""

    name = serializers.CharField()
    url = serializers.CharField()
    refs = serializers.ListField(child=serializers.CharField())
    credentials = serializers.ChoiceField(["none", "token", "deploy_key"])
    public_key = serializers.CharField()
    submodules = serializers.BooleanField()
    lfs = serializers.BooleanField()
    forge = serializers.CharField(help_text="github, gitlab, or empty.")
    api_url = serializers.CharField(help_text="Empty: the API is at its usual place.")
    made_by = serializers.CharField()
    made_at = serializers.CharField()
    rotated_at = serializers.CharField(allow_null=True)


class Sources(serializers.Serializer):
    """All sources of a team, by name."""

    sources = SourceShape(many=True)


class BranchRequest(serializers.Serializer):
    """A branch for what a run changed."""

    name = serializers.CharField(required=False, max_length=200, help_text="It begins with spak/.")
    title = serializers.CharField(required=False, max_length=100, help_text="What its commit says.")
    pull = serializers.BooleanField(required=False, help_text="Open a pull request with it.")


class BranchShape(serializers.Serializer):
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


class Branches(serializers.Serializer):
    """Branches of a run, the newest first."""

    branches = BranchShape(many=True)


class BegunFrom(serializers.Serializer):
    """Where a run's files come from; `commit` is empty until a worker has fetched them."""

    name = serializers.CharField()
    url = serializers.CharField()
    ref = serializers.CharField()
    commit = serializers.CharField()


class UploadShape(serializers.Serializer):
    """Files that runs of the team may begin with."""

    hash = serializers.CharField()
    name = serializers.CharField()
    files = serializers.IntegerField()
    bytes = serializers.IntegerField()


class RunShape(serializers.Serializer):
    """A run as it is now."""

    key = serializers.CharField()
    team = serializers.CharField()
    spec = serializers.CharField(allow_null=True)
    version = serializers.IntegerField(allow_null=True)
    spec_hash = serializers.CharField(allow_null=True)
    name = serializers.CharField()
    state = serializers.CharField()
    ended = serializers.BooleanField()
    checked = serializers.BooleanField(allow_null=True, help_text="Whether anything checked a result.")
    reason = serializers.CharField(help_text="Codes of why it ended or waits.")
    why = serializers.CharField()
    task = serializers.CharField(help_text="Empty where the token does not see the text that it runs.")
    asks = serializers.CharField(help_text="The id of what it waits for; empty: nothing.")
    records = serializers.IntegerField()
    head = serializers.CharField(help_text="The hash of its last record.")
    steps = serializers.IntegerField()
    tokens = serializers.DictField()
    cost_nanousd = serializers.IntegerField()
    mode = serializers.CharField()
    backend = serializers.CharField()
    queue = serializers.CharField()
    inputs = serializers.DictField()
    labels = serializers.ListField(child=serializers.CharField())
    trial = serializers.CharField(help_text="experiment or campaign, of a run of one; else empty.")
    files = serializers.CharField(allow_null=True)
    source = BegunFrom(allow_null=True)
    made_at = serializers.CharField()
    started_at = serializers.CharField()
    ended_at = serializers.CharField()
    url = serializers.CharField()
    html_url = serializers.CharField()


class Runs(serializers.Serializer):
    """A page of runs, the newest first; `next` is the address of the page after it."""

    runs = RunShape(many=True)
    next = serializers.CharField(allow_null=True)


class Records(serializers.Serializer):
    """Records in order, each as the ledger has it. `next` is the address of those after them, null when the
    run has ended and all were given."""

    records = serializers.ListField(child=serializers.DictField())
    next = serializers.CharField(allow_null=True)


class AnswerRequest(serializers.Serializer):
    """An answer to what the run waits for; `of` is the `asks` of the run."""

    of = serializers.CharField(max_length=200)
    text = serializers.CharField(trim_whitespace=False, allow_blank=True)


class PatchRequest(serializers.Serializer):
    """A whole text, or a unified diff of it, against a version."""

    text = serializers.CharField(max_length=TEXT_BYTES, trim_whitespace=False)
    base_version = serializers.IntegerField(min_value=1)
    title = serializers.CharField(max_length=120)
    rationale = serializers.CharField(required=False, allow_blank=True, max_length=20_000)


class CheckShape(serializers.Serializer):
    """A check of a revision."""

    name = serializers.CharField()
    state = serializers.CharField()
    words = serializers.CharField()


class PatchShape(serializers.Serializer):
    """A patch: `missing` says what a merge still waits for."""

    number = serializers.IntegerField()
    title = serializers.CharField()
    state = serializers.CharField()
    proposer = serializers.CharField()
    revision = serializers.IntegerField()
    base_version = serializers.IntegerField()
    hash = serializers.CharField()
    checks = CheckShape(many=True)
    missing = serializers.ListField(child=serializers.CharField())
    merged_version = serializers.IntegerField(allow_null=True)
    html_url = serializers.CharField()


def spec_of(request: Builds, spec: Spec) -> dict[str, Any]:
    """A spec as SpecShape."""
    here = [spec.team.slug, spec.slug]
    prefetch_related_objects([spec], "tags__version")
    return {
        "slug": spec.slug,
        "name": spec.name,
        "head": spec.head.number,
        "hash": spec.head.content_hash,
        "tags": {tag.name: tag.version.number for tag in spec.tags.all()},
        "protected": spec.review_rules.approvals > 0,
        "archived": spec.archived_at is not None,
        "html_url": request.build_absolute_uri(reverse("spak-spec-detail", args=here)),
    }


def version_of(version: SpecVersion) -> dict[str, Any]:
    """A version as VersionShape."""
    return {
        "number": version.number,
        "hash": version.content_hash,
        "message": version.message,
        "author": str(version.author),
        "made_at": version.made_at.isoformat(),
        "text": version.text,
    }


def run_of(request: Builds, row: dict[str, Any]) -> dict[str, Any]:
    """A run as RunShape, from `.values(*RUN_COLUMNS)`."""
    shown = list_row(row, clock.now())
    here = [row["team__slug"], row["key"]]
    return {
        **{name: shown[name] for name in ("key", "name", "state", "checked", "reason", "why", "asks")},
        "task": "" if hides(request.user, row["takes_in"]) else shown["task"],
        **{name: shown[name] for name in ("steps", "tokens", "labels", "made_at", "started_at", "ended_at")},
        **{name: row[name] for name in ("head", "mode", "backend", "queue", "inputs", "trial")},
        "team": row["team__slug"],
        "spec": row["version__spec__slug"] or row["own__spec__slug"],
        "version": row["version__number"],
        "spec_hash": row["version__content_hash"],
        "ended": bool(row["ended_at"]),
        "records": row["count"],
        "cost_nanousd": shown["cost"],
        "files": row["files__root"],
        "source": {name: row[f"begun_from__{name}"] for name in ("name", "url", "ref", "commit")}
        if row["begun_from__name"]
        else None,
        "url": request.build_absolute_uri(reverse("spak-api-run", args=here)),
        "html_url": request.build_absolute_uri(reverse("spak-run", args=here)),
    }


SOURCE_FIELDS = ("name", "url", "public_key", "submodules", "lfs", "forge", "api_url")
BRANCH_FIELDS = ("name", "title", "state", "commit", "error", "pull", "pull_url")


def source_of(source: Source) -> dict[str, Any]:
    """A source as SourceShape."""
    kind = "deploy_key" if source.public_key else "token" if source.sealed else "none"
    return {
        **{name: getattr(source, name) for name in SOURCE_FIELDS},
        "refs": source.patterns,
        "credentials": kind,
        "made_by": str(source.made_by),
        "made_at": source.made_at.isoformat(),
        "rotated_at": source.rotated_at.isoformat() if source.rotated_at else None,
    }


def branch_of(row: Branch) -> dict[str, Any]:
    """A branch as BranchShape."""
    return {
        **{name: getattr(row, name) for name in BRANCH_FIELDS},
        "asked_by": str(row.asked_by),
        "decided_by": str(row.decided_by) if row.decided_by else None,
    }


def one_run(request: Builds, run: Run) -> dict[str, Any]:
    """A run as RunShape, as the database has it now."""
    return run_of(request, Run.objects.filter(pk=run.pk).values(*RUN_COLUMNS).get())
