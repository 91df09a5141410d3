"""What a binary does with its words: one line of data per binary that a workspace may use.

`operands` says what the words are that are not options, in order; the last kind goes on:
    read    a path that is read          write   a path that is made or changed
    delete  a path that is taken away    text    no path at all
    none    no operand is expected       code    the project's own file, which is run
    generated  a path that is emptied, which a build can make again
`options` says what an option takes: `name=kind` (the kinds above, and `number`), or `name!reason` for an
option that runs, writes or sends something and is therefore not for the command line. A name of one letter is
a short option. Options that are not named are flags without effect beyond the binary's own. A binary that is
not here is unknown. Source: seed 004 section 4.1 (argv rules per binary and flag).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Binary:
    operands: tuple[str, ...]
    takes: dict[str, str]
    """Option to the kind of its value."""
    refused: dict[str, str]
    """Option to the reason."""
    does: str = "computes"


_READERS = """
cat: read
tac: read
nl: read
head: read; n=number c=number lines=number bytes=number
tail: read; n=number c=number lines=number bytes=number pid=number s=number
wc: read; files0-from!reads_names_from_a_file
sort: read; o=write output=write k=text key=text t=text field-separator=text S=text buffer-size=text \
T=write temporary-directory=write compress-program!runs_a_program parallel=number \
files0-from!reads_names_from_a_file
uniq: read write; f=number s=number w=number
cut: read; d=text f=text c=text b=text delimiter=text fields=text output-delimiter=text \
characters=text bytes=text
paste: read; d=text delimiters=text
join: read; t=text 1=text 2=text a=text o=text e=text j=text v=text
comm: read
rev: read
fold: read; w=number
fmt: read; w=number
expand: read; t=text
unexpand: read; t=text
column: read; t=flag s=text o=text c=number N=text
od: read; A=text t=text N=number j=number w=flag
hexdump: read; e=text f=read n=number s=number C=flag
xxd: read write; l=number s=number c=number g=number r!writes_bytes
strings: read; n=number
file: read; m=read magic-file=read C!writes_a_file compile!writes_a_file f!reads_names_from_a_file
stat: read; c=text format=text printf=text
ls: read; I=text ignore=text hide=text w=number width=number T=number sort=text time=text color=flag \
time-style=text format=text quoting-style=text indicator-style=text block-size=text
tree: read; L=number I=text P=text o=write
du: read; d=number max-depth=number exclude=text t=text threshold=text X=read \
files0-from!reads_names_from_a_file
df: read; t=text x=text output=text
diff: read; U=number C=number unified=flag context=flag x=text exclude=text I=text label=text L=text \
W=number S=text color=flag F=text
cmp: read; n=number i=text
sdiff: read; o=write w=number diff-program!runs_a_program
diffstat: read
grep: text read; e=text* regexp=text* f=read* file=read* A=number B=number C=number m=number \
include=text exclude=text exclude-dir=text exclude-from=read color=flag colour=flag \
after-context=number before-context=number context=number max-count=number D=text d=text label=text \
binary-files=text
egrep: =grep
fgrep: =grep
zgrep: =grep
rg: text read; e=text* regexp=text* f=read* file=read* A=number B=number C=number m=number g=text \
glob=text iglob=text t=text type=text T=text type-not=text type-add=text max-count=number r=text \
replace=text color=text colors=text sort=text sortr=text M=number d=number max-depth=number j=number \
E=text files=flag@first type-list=flag@first pre!runs_a_program pre-glob=text \
L!follows_links follow!follows_links \
hostname-bin!runs_a_program search-zip!runs_programs z!runs_programs ignore-file=read context=number \
after-context=number before-context=number
ag: text read; pager!runs_a_program G=text ignore=text A=number B=number C=number p=read
ack: text read; pager!runs_a_program type=text ackrc!reads_settings A=number B=number C=number
fd: text read; x!runs_a_command exec!runs_a_command X!runs_a_command exec-batch!runs_a_command \
e=text extension=text t=text type=text E=text exclude=text d=number max-depth=number S=text \
size=text changed-within=text base-directory=read search-path=read
jq: text read; f=read* from-file=read* L=read arg=text2 argjson=text2 slurpfile=textread \
rawfile=textread indent=number args=flag jsonargs=flag tab=flag
yq: text read; i!changes_files inplace!changes_files o=text p=text output-format=text \
input-format=text I=number split-exp!writes_files s!writes_files
xmllint: read; xpath=text o=write output=write schema=read encode=text noout=flag \
loaddtd!loads_what_a_file_names dtdvalid!loads_what_a_file_names path=read shell!runs_commands
base64: read; w=number wrap=number
base32: read; w=number
md5sum: read
sha1sum: read
sha224sum: read
sha256sum: read
sha384sum: read
sha512sum: read
shasum: read; a=number
b2sum: read; l=number
cksum: read; a=text
sum: read
realpath: read; relative-to=read relative-base=read
readlink: read
zcat: read
bzcat: read
xzcat: read
zipinfo: read
nm: read
size: read
objdump: read; M=text j=text
readelf: read; x=text p=text
cloc: read; exclude-dir=text include-lang=text by-file=flag extract-with!runs_a_program \
diff-list-file=read out=write report-file=write config=read
tokei: read
wdiff: read
colordiff: read
shellcheck: read; s=text e=text f=text x=flag
hadolint: read
lsof: refused
ctags: read; o=write f=write options!reads_settings L!reads_names_from_a_file exclude=text languages=text \
fields=text extras=text kinds=text
yamllint: read; c=read config-file=read d=text config-data=text f=text format=text
markdownlint: read; c=read config=read r!loads_code rules!loads_code f=flag fix=flag o=write output=write \
i=read ignore=text
codespell: read; w=flag i=number I=read D=read L=text S=text skip=text ignore-words-list=text \
ignore-words=read dictionary=read
addr2line: read text; e=read exe=read j=text
c++filt: text
shuf: read; n=number i=text o=write output=write random-source=read e=flag
iconv: read; f=text t=text from-code=text to-code=text o=write output=write
ldd: code
ffprobe: read; v=text f=text show_entries=text of=text print_format=text select_streams=text loglevel=text \
i=read o=write
cppcheck: read; enable=text std=text I=read i=read suppress=text output-file=write project=read j=number \
D=text error-exitcode=number addon!runs_a_program library=read plist-output=write cppcheck-build-dir=write \
rule-file=read
actionlint: read; shellcheck!runs_a_program pyflakes!runs_a_program config-file=read format=text ignore=text
"""

_TEXT = """
echo: text
printf: text; v=names
true: text
false: text
:: text
exit: text
return: text
break: text
continue: text
basename: text
dirname: text
date: none_text; f=read file=read r=read reference=read I=text s!sets_the_clock set!sets_the_clock d=text \
date=text
cal: text
uname: text
arch: none
whoami: none
id: text
groups: text
hostname: none; F!sets_the_name file!sets_the_name b!sets_the_name I=flag
uptime: none
nproc: none; ignore=number
nvidia-smi: none; L=flag q=flag query-gpu=text query-compute-apps=text format=text i=text id=text d=text \
display=text x=flag f=write filename=write l!repeats_without_end loop!repeats_without_end \
lms!repeats_without_end loop-ms!repeats_without_end r!changes_the_device p!changes_the_device \
gpu-reset!changes_the_device persistence-mode!changes_the_device power-limit!changes_the_device \
c!changes_the_device compute-mode!changes_the_device e!changes_the_device ecc-config!changes_the_device \
a!changes_the_device m!changes_the_device g!changes_the_device
free: none; s!repeats_without_end seconds!repeats_without_end c=number
locale: text
tty: none
pwd: none
which: text
type: text
hash: none
expr: text
bc: none_text; f=read
tr: text
read: names; u=number p=text d=text n=number t=number a=text
shift: text
wait: none
umask: none
local: text
getconf: text
numfmt: text; field=text from=text to=text format=text d=text suffix=text padding=number
tput: text
clear: none
factor: text
lscpu: none
jobs: none
ulimit: text
man: refused
"""

_WRITERS = """
mkdir: write; m=text mode=text
touch: write; d=text date=text t=text r=read reference=read
rmdir: delete
cp: read* write; t=write target-directory=write S=text suffix=text backup=flag sparse=text \
reflink=flag preserve=flag no-preserve=text
mv: delete_source* write; t=write target-directory=write S=text suffix=text backup=flag
rm: delete
unlink: delete
tee: write
install: read* write; m=text mode=text t=write o!changes_an_owner g!changes_a_group \
strip-program!runs_a_program
gzip: write; S=text
gunzip: write; S=text
bzip2: write
xz: write
zstd: write; o=write
zip: write* read; T!runs_a_program TT!runs_a_program unzip-command!runs_a_program x=text i=text b=write
unzip: read text; d=write x=text
csplit: read text; f=write b=text n=number
split: read write; l=number b=text n=text a=number filter!runs_a_command d=flag
dos2unix: write
strip: write; o=write s=flag g=flag R=text K=text
ranlib: write
truncate: generated; s=size size=size r=read reference=read
dot: read; T=text o=write K=text G=text N=text E=text l!loads_a_library
pandoc: read; o=write output=write f=text from=text r=text read=text t=text to=text w=text write=text \
s=flag toc=flag template=read V=text variable=text M=text metadata=text c=text css=text H=read \
include-in-header=read reference-doc=read F!runs_a_program filter!runs_a_program L!runs_a_script \
lua-filter!runs_a_script pdf-engine!chooses_a_program pdf-engine-opt!hands_on_options extract-media=write \
d!reads_options defaults!reads_options data-dir!loads_scripts request-header!sends_data
protoc: read; I=read proto_path=read o=write descriptor_set_out=write python_out=write cpp_out=write \
java_out=write go_out=write js_out=write pyi_out=write grpc_python_out=write plugin!runs_a_program
unix2dos: write
patch: write read; p=number i=read input=read d=read directory=read o=write output=write r=write \
z=text e!edits_by_a_script ed!edits_by_a_script get!fetches_files g!fetches_files D=text
"""

_TOOLS = """
pytest: tests; k=text m=text c=read rootdir=read confcutdir=read basetemp=generated junitxml=write \
junit-xml=write n=text p=plugin o!changes_settings override-ini!changes_settings maxfail=number \
tb=text durations=number cov=read cov-report=text cov-config=read color=text W=text import-mode=text \
ignore=read ignore-glob=text deselect=text x=flag timeout=number dist=text r=text log-cli-level=text \
log-level=text show-capture=text verbosity=number pastebin!sends_the_output pdb=flag \
pdbcls!loads_a_class trace=flag log-file=write debug=write report-log=write html=write
py.test: =pytest
tox: tests; e=text c=read workdir=write x=text installpkg=read
nox: tests; s=text f=read k=text
unittest: text
mypy: read; config-file=read python-version=text m=text p=text c!runs_code cache-dir=write \
package=text module=text follow-imports=text python-executable!runs_a_program html-report=write \
any-exprs-report=write platform=text junit-xml=write install-types!installs_packages
pyright: read; p=read project=read pythonversion=text
ruff: text read; config=read select=text ignore=text extend-select=text line-length=number \
output-format=text target-version=text o=write output-file=write exclude=text cache-dir=write \
per-file-ignores=text
black: read; l=number line-length=number t=text target-version=text c!code include=text exclude=text \
config=read
isort: read; profile=text l=number sp=read settings-path=read
flake8: read; max-line-length=number select=text ignore=text extend-ignore=text exclude=text \
config=read output-file=write max-complexity=number format=text
pylint: read; rcfile=read disable=text enable=text d=text e=text j=number init-hook!runs_code f=text \
output-format=text load-plugins!loads_code output=write fail-under=number
bandit: read; r=flag c=read o=write f=text ll=flag x=text
vulture: read; min-confidence=number
pre-commit: precommit
coverage: coverage
sphinx-build: read; b=text d=write c=read D=text W=flag j=text
mkdocs: first:build,--version; f=read
alembic: first:current,history,heads,upgrade,downgrade,revision,check; m=text message=text
lint-imports: none; config=read
cmake: cmake
ctest: tests; R=text E=text L=text j=number test-dir=read parallel=number timeout=number C=text \
S!runs_a_script D=text M=text T=text script!runs_a_script build-and-test!runs_a_program
ninja: tests; C=read f=read j=number k=number t=text
meson: first:setup,compile,test,configure,introspect
gcc: read; o=write I=read L=read l=text D=text U=text x=text std=text MF=write MT=text MQ=text \
include=read isystem=read iquote=read idirafter=read wrapper!runs_a_program \
B!looks_for_programs_there fplugin!loads_a_plugin \
fpass-plugin!loads_a_plugin load!loads_a_plugin Xclang!hands_on_options \
specs!changes_what_is_run Xlinker=text \
Xassembler=text Xpreprocessor=text T=read fuse-ld!chooses_a_program aux-info=write dumpdir=write
g++: =gcc
cc: =gcc
c++: =gcc
clang: =gcc
nvcc: read; o=write arch=text code=text gencode=text I=read L=read l=text D=text U=text x=text std=text \
O=text m=text G=flag lineinfo=flag c=flag ptx=flag cubin=flag dc=flag shared=flag include=read odir=write \
output-directory=write output-file=write ccbin!chooses_a_program compiler-bindir!chooses_a_program \
Xcompiler!hands_on_options Xlinker!hands_on_options Xptxas=text Xnvlink!hands_on_options \
optf!reads_options options-file!reads_options run!runs_what_it_builds t=number threads=number \
forward-unknown-to-host-compiler!hands_on_options dryrun=flag ldir!chooses_a_program \
compiler-options!hands_on_options linker-options!hands_on_options
clang++: =gcc
clang-format: read; i=flag style=text
clang-tidy: read; p=read checks=text load!loads_a_plugin
rustc: read; o=write L=text l=text crate-type=text edition=text C!changes_what_is_run emit=text \
crate-name=text out-dir=write O=flag explain=text codegen!changes_what_is_run
rustfmt: read; edition=text config-path=read
gofmt: read; w=flag d=flag l=flag s=flag r=text cpuprofile=write
goimports: read
javac: read; d=write cp=read classpath=read source=number target=number processorpath!loads_code \
processor!loads_code J!sets_options_of_the_machine
tsc: read; p=read project=read outDir=write outFile=write target=text module=text b=flag
eslint: read; c=read config=read ext=text rulesdir!loads_code plugin=text \
resolve-plugins-relative-to!loads_code f=text format=text o=write output-file=write \
max-warnings=number parser!loads_code
prettier: read; config=read plugin!loads_code write=flag check=flag w=flag c=flag parser=text
jest: text; c=settings config=settings t=text testNamePattern=text coverageDirectory=write maxWorkers=text \
testPathPattern=text globalSetup!loads_code setupFiles!loads_code
vitest: text; c=settings config=settings t=text
mocha: code; r!loads_code require!loads_code g=text grep=text timeout=number R=text reporter=text
webpack: text; c=settings config=settings mode=text
vite: first:build
bats: code
shfmt: read; i=number
sqlite3: sqlite
make: make
gmake: =make
just: tests; f=read justfile=read shell!runs_a_program c!runs_a_command command!runs_a_command \
shell-arg!runs_a_command d=read working-directory=read
gradle: tests; b=read p=read I!runs_a_script init-script!runs_a_script
autoreconf: tests; I=read B=read
autoconf: tests; o=write I=read
automake: tests
aclocal: tests; I=read
libtoolize: tests
golangci-lint: first:run,linters,version,--version,fmt; c=read config=read E=text D=text timeout=text
rubocop: read; c=read config=read r!loads_code require!loads_code a=flag A=flag f=text format=text o=write \
out=write only=text except=text plugin!loads_code
phpunit: tests; c=read configuration=read filter=text bootstrap=read coverage-html=write testsuite=text \
coverage-text=flag log-junit=write prepend!loads_code extension!loads_code d!changes_settings
swift: first:build,test,package_resolve,--version; c=text configuration=text Xswiftc!hands_on_options \
Xlinker!hands_on_options Xcc!hands_on_options filter=text
dotnet: first:build,test,restore,run,clean,format,list,--version,--info
bundle: first:exec_rspec,check,list,install
rspec: code; r!loads_code require!loads_code e=text f=text o=write
mix: first:test,compile,format,--version; only=text
stack: first:build,test,--version
dune: first:build,test,runtest,--version
rake: tests; f=read e!runs_code execute!runs_code p!runs_code r!loads_code
"""


@cache
def table() -> dict[str, Binary]:
    """All binaries by name."""
    found: dict[str, Binary] = {}
    for text, does in ((_READERS, "reads"), (_TEXT, "computes"), (_WRITERS, "writes"), (_TOOLS, "builds")):
        for line in text.replace("\\\n", "").strip().splitlines():
            name, _, rest = line.strip().partition(": ")
            if rest.startswith("="):
                found[name] = found[rest[1:]]
                continue
            operands, _, options = rest.partition(";")
            takes: dict[str, str] = {}
            refused: dict[str, str] = {}
            for option in options.split():
                key, sign, reason = option.partition("!")
                if sign:
                    refused[key] = reason.replace("_", " ")
                else:
                    key, _, kind = option.partition("=")
                    takes[key] = kind
            found[name] = Binary(tuple(operands.split()), takes, refused, does)
    return found


STANDARD_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/")


def rule_of(takes: str = "", refused: str = "", operands: str = "read") -> Binary:
    """A table line made here: `takes` as name=kind, `refused` as names."""
    pairs = (item.partition("=") for item in takes.split())
    return Binary(
        tuple(operands.split()),
        {name: kind for name, _, kind in pairs},
        dict.fromkeys(refused.split(), "it runs, loads or sends something"),
    )
