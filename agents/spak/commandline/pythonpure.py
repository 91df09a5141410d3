"""What of Python's standard library only computes: functions that a text on a command line may call.

Tables alone. A module that is here is read as `pythontext` reads `json`; what is not named of it is refused.
Left out is what runs or imports (importlib, runpy, pickle), reaches (os, socket, subprocess, shutil, ctypes),
opens what it is given (pathlib, fileinput, linecache), makes classes or looks up names (namedtuple).
"""

from __future__ import annotations

from spak.commandline.words import words

_OF = {
    "ast": "parse literal_eval dump walk unparse get_docstring iter_child_nodes iter_fields",
    "base64": "b64encode b64decode urlsafe_b64encode urlsafe_b64decode b32encode b32decode b16encode "
    "b16decode",
    "bisect": "bisect bisect_left bisect_right",
    "calendar": "monthrange isleap leapdays month weekday",
    "collections": "Counter OrderedDict deque defaultdict ChainMap",
    "csv": "reader DictReader writer DictWriter",
    "datetime": "datetime date time timedelta timezone datetime.now datetime.today datetime.utcnow "
    "datetime.fromisoformat datetime.fromtimestamp datetime.strptime datetime.combine date.today "
    "date.fromisoformat date.fromtimestamp",
    "decimal": "Decimal",
    "difflib": "unified_diff ndiff context_diff get_close_matches SequenceMatcher",
    "fnmatch": "fnmatch fnmatchcase filter translate",
    "fractions": "Fraction",
    "functools": "reduce",
    "hashlib": "md5 sha1 sha224 sha256 sha384 sha512 sha3_256 sha3_512 blake2b blake2s file_digest",
    "heapq": "heapify nlargest nsmallest merge",
    "html": "escape unescape",
    "itertools": "chain chain.from_iterable islice product combinations combinations_with_replacement "
    "permutations zip_longest groupby accumulate pairwise takewhile dropwhile filterfalse compress",
    "json": "load loads dumps",
    "math": "sqrt isqrt cbrt floor ceil trunc fabs fmod fsum prod log log2 log10 log1p exp exp2 expm1 "
    "pow sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh hypot dist gcd lcm isclose "
    "isnan isinf isfinite copysign degrees radians modf frexp ldexp erf erfc gamma lgamma",
    "operator": "itemgetter add sub mul truediv floordiv mod eq ne lt le gt ge",
    "pprint": "pprint pformat",
    "random": "random randint randrange choice choices sample uniform seed shuffle gauss",
    "re": "match search findall split sub subn fullmatch finditer compile escape",
    "shlex": "split quote join",
    "statistics": "mean fmean median median_low median_high mode multimode stdev pstdev variance "
    "pvariance quantiles geometric_mean harmonic_mean correlation linear_regression",
    "string": "capwords ascii_letters.index",
    "struct": "pack unpack calcsize",
    "textwrap": "dedent indent fill wrap shorten",
    "tomllib": "load loads",
    "unicodedata": "name normalize category",
    "zlib": "crc32 adler32",
}
_PARTLY = words(
    "sys.exit sys.version_info.index os.cpu_count os.getcwd os.path.join os.path.split "
    "os.path.basename os.path.dirname os.path.splitext os.path.normpath platform.system "
    "platform.machine platform.platform platform.version platform.python_version time.time "
    "time.perf_counter time.monotonic time.strftime time.gmtime time.localtime sys.stdin.read "
    "sys.stdin.buffer.read sys.stdin.readline sys.stdin.readlines sys.version.split "
    "sys.platform.startswith sys.path.index sys.stdout.write sys.stdout.flush sys.stderr.write "
    "uuid.uuid4"
)
"""Of modules that do more than compute."""

PURE = frozenset(_OF)
FUNCTIONS = frozenset(f"{module}.{name}" for module, names in _OF.items() for name in names.split()) | _PARTLY
"""What is called, by its whole name."""
DATA = words(
    "sys.argv sys.stdin sys.stdin.buffer sys.stdout sys.stderr sys.version sys.version_info "
    "sys.platform sys.executable sys.maxsize sys.byteorder sys.prefix sys.base_prefix os.sep "
    "os.linesep os.curdir os.pathsep os.name math.pi math.e math.tau math.inf math.nan "
    "datetime.timezone.utc string.ascii_letters string.ascii_lowercase string.ascii_uppercase "
    "string.digits string.punctuation string.hexdigits string.whitespace string.printable "
    "json.JSONDecodeError tomllib.TOMLDecodeError"
)
"""What may stand anywhere, because it is no function that does anything and no module."""
METHODS = words(
    "version python_version join split strip lower upper format encode decode keys values items index "
    "count startswith endswith cpu_count getcwd machine system platform hexdigest digest exit read "
    "readline readlines splitlines get load loads dumps lstrip rstrip replace title isdigit zfill "
    "rjust ljust center group groups groupdict start end span findall finditer match fullmatch search "
    "sub subn time now today isoformat add append extend insert pop remove sort reverse clear copy "
    "update setdefault union intersection difference symmetric_difference issubset issuperset "
    "isdisjoint most_common elements total subtract appendleft popleft rotate casefold capitalize "
    "swapcase partition rpartition rsplit rfind rindex removeprefix removesuffix isalpha isalnum "
    "isspace isupper islower isnumeric isdecimal isidentifier hex bit_length as_integer_ratio "
    "is_integer strftime timestamp date weekday isoweekday isocalendar total_seconds astimezone "
    "writerow writerows writeheader ratio quantize close"
)
"""What is called of anything that is no module."""
MODULES = words(
    "os sys posix nt subprocess shutil socket ctypes importlib builtins pathlib io codecs tempfile "
    "signal pickle shelve sqlite3 multiprocessing asyncio threading runpy pty urllib zipfile tarfile "
    "fileinput linecache glob mmap fcntl inspect gc webbrowser pdb imp"
)
"""Attributes that are modules, whatever they are asked of."""
