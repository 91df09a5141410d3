"""Variables of the environment: which of them change what a program runs, loads or talks to."""

from __future__ import annotations

import re
from collections.abc import Sequence

_RUNS = re.compile(
    r"(LD_|DYLD_|GIT_|GNUMAKE|BASH|PERL|RUBY|NODE_|NPM_|npm_|PIP_|UV_|CARGO|RUST(C|DOC|FLAGS|UP)|GO(FLAGS|PROXY|ROOT|PATH|BIN|"
    r"TOOL|NOSUM|PRIVATE|INSECURE|ENV|CACHE)|CGO_|MAKE|PYTHON|PYTEST_|JAVA|_JAVA|MAVEN|GRADLE|JDK|CLASSPATH|LUA|PHP|"
    r"SSL_|SSH|CURL|REQUESTS_|GCONV|GLIBC|MALLOC|LOCPATH|NLSPATH|TERMINFO|TERMCAP|LESS|MAN|TAR_|RSYNC|DOCKER|KUBE|AWS_|"
    r"SUDO|ZDOT|XDG_|RIPGREP_|GREP_|JQ_|CMAKE|NINJA|GCC_|COMPILER_PATH|LIBRARY_PATH|CPATH|C_INCLUDE|CPLUS|AWK|POSIXLY|"
    r"TMUX|FZF|BAT_|HG|SVN|EMACS|VIM|DEBUGINFOD|QT_|GTK|OPENSSL|KRB5|PKG_CONFIG|ACLOCAL|AUTO|CONFIG_|DOTNET_|COMPlus_|CORECLR_|SPHINX|ERL_|BUNDLE_|COMPOSER|R_|MIX_|GVBIN|FFREPORT|"
    r"MAGICK_|YARN_|COREPACK_|VALGRIND|PERF_|STRACE|GDB|ZIPOPT|UNZIP|GZIP|BZIP|XZ_|ZSTD_|TOX_|NOX_|CTEST_)"
    r"|.*(PROXY|proxy|PAGER|EDITOR|VISUAL|BROWSER|ASKPASS|_WRAPPER|_LINKER|_RUNNER|PRELOAD|_COMMAND|STARTUP)\Z"
    r"|(PATH|IFS|ENV|HOME|PWD|OLDPWD|SHELL|PS[0-4]|PROMPT_COMMAND|CDPATH|FPATH|SHELLOPTS|TMPDIR|TMP|TEMP|OPENER|CC|CXX|CPP|LD|AR|AS|NM|"
    r"RANLIB|STRIP|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|LDLIBS|YACC|LEX|FC|OBJC|INSTALL|POSTGRES.*|DATABASE_URL|HISTFILE|"
    r"MAIL|MAILPATH|INPUTRC|COMSPEC)\Z"
)
_HARMLESS = re.compile(
    r"(PYTHON(PATH|HASHSEED|DONTWRITEBYTECODE|UNBUFFERED|WARNINGS|UTF8|IOENCODING|DEVMODE|FAULTHANDLER|TRACEMALLOC|"
    r"OPTIMIZE|NODEBUGRANGES|ASYNCIODEBUG)|NODE_ENV|CARGO_TERM_COLOR|CARGO_INCREMENTAL|RUST_BACKTRACE|RUST_LOG|"
    r"CGO_ENABLED|GOOS|GOARCH|GOMAXPROCS|GIT_TERMINAL_PROMPT|MAKEFLAGS|LESSCHARSET|PYTEST_DISABLE_PLUGIN_AUTOLOAD)\Z"
)
_PLAIN = re.compile(r"[\w.,:+-]*\Z", re.ASCII)
_COMPILERS = frozenset(["gcc", "clang", "cc", "g++", "clang++", "c++", "tcc"])
_FLAGS = re.compile(
    r"(-(O[0-3sg]?|g[0-3]?|W[\w=+-]*|std=[\w+]+|f(sanitize=[\w,]+|PIC|no-omit-frame-pointer)|D\w+(=\w*)?|pthread|march=native)\s*)*\Z"
)


def matters(name: str) -> bool:
    """True for a variable that programs read to decide what they run, load or talk to."""
    return _RUNS.match(name) is not None


def is_path_list(name: str) -> bool:
    """Whether a variable's value is a list of folders."""
    return name == "PYTHONPATH"


def trouble(name: str, values: Sequence[str]) -> str | None:
    """Why a program should not be started with this variable; None when it is harmless."""
    if name == "PYTHONPATH":
        return None
    if name == "PYTHONWARNINGS" or name == "MAKEFLAGS":
        safe = all(
            re.match(r"(-j ?\d+|default|ignore|error|always|once)(::?\w*)*\Z", value) for value in values
        )
        return None if safe else f"{name} can change what is run"
    if _HARMLESS.match(name):
        return None if all(_PLAIN.match(value) for value in values) else f"an unusual value of {name}"
    if name in ("CC", "CXX") and all(value in _COMPILERS for value in values):
        return None
    if name in ("CFLAGS", "CXXFLAGS", "CPPFLAGS") and all(_FLAGS.match(value) for value in values):
        return None
    if name in ("PAGER", "GIT_PAGER") and all(value == "cat" for value in values):
        return None
    if name == "NODE_OPTIONS" and all(
        re.match(r"--max[-_]old[-_]space[-_]size=\d+\Z", value) for value in values
    ):
        return None
    if matters(name):
        return f"{name} changes what programs run, load or talk to"
    if any(value.startswith("-") for value in values):
        return f"a value of {name} that reads like an option"
    return None
