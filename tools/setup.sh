# shellcheck shell=bash
# Sourced by run_all.sh: finds what a sub-command needs and brings what is missing. What is on the machine is used as it
# is; the rest goes into .deps (compiler, libraries) and .venv (Python packages) of the checkout and nowhere else.
# Each step that changes something says so in one line; doing it again changes nothing.

deps=$PWD/.deps
venv=$PWD/.venv

say() { printf '%s\n' "$*" >&2; }
die() { say "run_all.sh: $*"; exit 1; }
have() { command -v "$1" >/dev/null; }

# at_least WANTED FOUND: compares dotted versions.
at_least() { [[ -n $2 && $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

# Set where the work goes on without what cannot be brought: the tests.
optional=

# cause LOG: what went wrong, where the log tells: a sentence and a space.
cause() {
  if grep -q 'No space left on device' "$1"; then echo "The disk is full. "
  elif grep -qE "ensurepip is not available|No module named '?(venv|ensurepip)" "$1"; then
    echo "This Python has no venv: $(install_hint python3-venv python3 python). "
  elif grep -qE 'Permission denied|Read-only file system' "$1"; then echo "This folder cannot be written to. "
  elif grep -qE 'resol|unreachable|[Cc]onnection|timed out|Failed to fetch|from versions: none' "$1"; then echo "Is there a network? "
  fi
}

# quietly WHAT ADVICE COMMAND...: shows the command's output only where it fails, which ends the run unless `optional` is set.
quietly() {
  local what=$1 advice=$2 log
  shift 2
  mkdir -p "$deps"
  log=$deps/setup.log
  "$@" >"$log" 2>&1 && return
  tail -n 3 "$log" >&2
  what+=" failed. $(cause "$log")$advice${advice:+. }The whole log: .deps/setup.log"
  [[ -n $optional ]] || die "$what"
  say "setup: $what"
  return 1
}

# The command that installs packages here, each system under its own names.
install_hint() {
  local debian=$1 fedora=$2 arch=$3
  if have apt-get; then echo "sudo apt-get install $debian"
  elif have dnf; then echo "sudo dnf install $fedora"
  elif have pacman; then echo "sudo pacman -S $arch"
  else echo "install $debian (Debian's names) in this system's way"; fi
}

# ---- packages of this system -----------------------------------------------------------------------------------------

# Downloads Debian packages; where the system's lists do not serve, with lists of our own, which takes no root.
download_debs() (
  apt=(apt-get -o APT::Sandbox::User=root)
  cd "$deps/deb" || exit
  "${apt[@]}" download "$@" && exit
  mkdir -p "$deps/apt/lists/partial" "$deps/apt/cache/archives/partial"
  apt+=(-o "Dir::State::Lists=$deps/apt/lists" -o "Dir::Cache=$deps/apt/cache")
  "${apt[@]}" update
  "${apt[@]}" download "$@"
)

# unpack_debs PACKAGE...: into .deps, which takes no root.
unpack_debs() {
  local deb
  rm -rf "$deps/deb"
  mkdir -p "$deps/deb"
  download_debs "$@" || return
  for deb in "$deps"/deb/*.deb; do dpkg -x "$deb" "$deps" || return; done
  rm -rf "$deps/deb" "$deps/apt"
}

# ---- Python ----------------------------------------------------------------------------------------------------------

need_python3() {
  python3 -ISc 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
    die "needs Python 3.10 or later: $(install_hint python3 python3 python)"
}

# venv_fault: why what stands at .venv is no environment of this checkout; nothing where it is one, or nothing stands there.
venv_fault() {
  local interpreter
  if [[ ! -e $venv ]]; then
    [[ ! -L $venv ]] || echo "a link to nowhere"
  elif [[ ! -d $venv ]]; then echo "no folder"
  elif [[ ! -f $venv/pyvenv.cfg || ! -x $venv/bin/pip ]]; then echo "half made"
  elif ! "$venv/bin/python" -c 'import pip' &>/dev/null; then echo "one whose Python does not start"
  else  # whose scripts name it: in their first line, or in the second, where its path is long or has a space
    interpreter=$(sed -nE "1s/^#!(.*python[0-9.]*)$/\1/p; 2s/^'''exec' \"?(.*python[0-9.]*)\"? \"\\\$0\".*/\1/p" "$venv/bin/pip")
    [[ ${interpreter%/*} -ef $venv/bin ]] || echo "made for another path"
  fi
}

# use_venv: the environment's programs come first on the PATH.
use_venv() {
  [[ -d $venv && -z $(venv_fault) ]] && PATH=$venv/bin:$PATH
}

# make_venv [WHAT FOR]: where there is none. What stands there and is none is kept beside it.
make_venv() {
  local fault aside=$venv.old
  fault=$(venv_fault)
  [[ -n $fault || ! -d $venv ]] || return 0
  if [[ $fault ]]; then
    while [[ -e $aside || -L $aside ]]; do aside+=.old; done
    mv "$venv" "$aside"
    say "setup: .venv is $fault; it is now ${aside##*/}"
  fi
  say "setup: a Python environment in .venv${1:+ for $1}"
  quietly "making .venv" "" create_venv
}

# Debian's python3 makes no pip for the environment without its python3-venv. Then the system's pip puts one there, or pip's
# own wheel, which Debian has as a package.
create_venv() {
  local wheel
  python3 -m venv --clear "$venv" && return
  python3 -m venv --clear --without-pip "$venv" || return
  python3 -m pip --python "$venv/bin/python" install pip && return
  unpack_debs python3-pip-whl || return
  wheel=("$deps"/usr/share/python-wheels/pip-*.whl)
  python3 "${wheel[0]}/pip" --python "$venv/bin/python" install pip
}

# need_python NAME...: the packages of requirements/NAME.txt, from the python3 at hand where it has them all.
need_python() {
  local files=("${@/#/requirements/}") missing arguments
  files=("${files[@]/%/.txt}")
  need_python3
  use_venv || :
  missing=$(python3 tools/missing.py "${files[@]}") && return
  make_venv "$(paste -sd ' ' <<<"$missing")" || return
  use_venv || die "the environment in .venv does not work: it is $(venv_fault)"
  missing=$(python3 tools/missing.py "${files[@]}") && return
  say "setup: into .venv: $(tr '\n' ' ' <<<"$missing")"
  arguments=("${files[@]/#/--requirement=}")
  quietly "installing Python packages" "By hand: .venv/bin/pip install ${arguments[*]}" \
    "$venv/bin/pip" install "${arguments[@]}"
}

# unpack_wheels NAME DIRECTORY: NVIDIA's wheels of requirements/NAME.txt, laid out as a toolkit in .deps/DIRECTORY.
unpack_wheels() {
  local requirements=requirements/$1.txt target=$deps/$2 part=$deps/$2.part library link
  need_python3
  local pip=(python3 -m pip)
  if ! "${pip[@]}" --version &>/dev/null; then
    make_venv || return
    pip=("$venv/bin/pip")
  fi
  rm -rf "$part"
  quietly "unpacking NVIDIA's wheels" "By hand: the CUDA Toolkit, 12.9 or later, from developer.nvidia.com/cuda-downloads" \
    "${pip[@]}" install --target "$part" --requirement "$requirements" || return
  for library in "$part"/nvidia/cu13/lib/lib*.so.*; do  # the linker wants libX.so, the wheels hold libX.so.N
    [[ -e $library ]] || continue
    link=${library%.so.*}.so
    ln -sf "$(basename "$library")" "$link"
  done
  [[ ! -d $part/nvidia/cu13/lib ]] || ln -s lib "$part/nvidia/cu13/lib64"
  mv "$part/nvidia/cu13" "$target"
  rm -rf "$part"
}

# ---- the compiler ----------------------------------------------------------------------------------------------------

usable_nvcc() {
  [[ -x $1 ]] && at_least 12.9 "$("$1" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\),.*/\1/p')" &&
    "$1" -E -x cu - <<<'#include <cublasLt.h>' &>/dev/null
}

# need_cuda: CUDACXX is an nvcc of 12.9 or later that finds cuBLAS.
need_cuda() {
  local nvcc cuda driver
  for nvcc in "${CUDACXX:-}" "$(type -P nvcc)" /usr/local/cuda/bin/nvcc "$deps/cuda/bin/nvcc"; do
    if usable_nvcc "$nvcc"; then export CUDACXX=$nvcc; return; fi
  done
  cuda=$(sed -n 's/^cuda-toolkit.*==\([0-9]*\.[0-9]*\).*/\1/p' requirements/cuda.txt)
  driver=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p' || :)
  [[ -z $driver ]] || at_least "$cuda" "$driver" ||
    die "no nvcc 12.9 or later with cuBLAS here, and this driver is too old for the one that set-up would fetch: it runs CUDA up to $driver, not $cuda. Update the driver, or install the CUDA Toolkit $driver"
  say "setup: no nvcc 12.9 or later with cuBLAS here; CUDA $cuda from NVIDIA's Python wheels into .deps/cuda (0.6 GB to fetch)"
  rm -rf "$deps/cuda"
  unpack_wheels cuda cuda
  usable_nvcc "$deps/cuda/bin/nvcc" || die "the nvcc in .deps/cuda does not work: is there a g++? $("$deps/cuda/bin/nvcc" --version 2>&1 | tail -n 1)"
  export CUDACXX=$deps/cuda/bin/nvcc
}

# use_sass: cuobjdump and nvdisasm are on the PATH, if they are anywhere here.
use_sass() {
  local directory
  for directory in "" "$(dirname "${CUDACXX:-$(type -P nvcc)}")" /usr/local/cuda/bin "$deps/sass/bin"; do
    if PATH=$directory:$PATH type -P cuobjdump nvdisasm &>/dev/null; then PATH=$directory:$PATH; return; fi
  done
  return 1
}

# need_sass: likewise; they are brought where they are not here.
need_sass() {
  use_sass && return
  say "setup: cuobjdump and nvdisasm from NVIDIA's Python wheels into .deps/sass"
  unpack_wheels sass sass || return
  PATH=$deps/sass/bin:$PATH
}

# ---- libraries and build tools ---------------------------------------------------------------------------------------

has_header() { c++ -std=c++20 -E -x c++ -isystem "$deps/usr/include" - <<<"#include <$1>" &>/dev/null; }

# need_packages HINT PACKAGE...: headers and libraries of Debian packages, unpacked into .deps/usr.
need_packages() {
  local hint=$1
  shift
  if ! type -P apt-get dpkg >/dev/null; then
    [[ -n $optional ]] || die "needs the headers of $*: $hint"
    say "setup: there are no headers of $*: $hint"
    return 1
  fi
  say "setup: $* from this system's packages into .deps/usr"
  quietly "downloading $*" "By hand: $hint" unpack_debs "$@"
}

need_libraries() {
  local debian=()
  has_header CLI/CLI.hpp || debian+=(libcli11-dev)
  has_header fmt/core.h || debian+=(libfmt-dev)
  # The simulator's: a machine with a GPU does without it.
  has_header zstd.h || nvidia-smi --list-gpus &>/dev/null || debian+=(libzstd-dev)
  [[ ${#debian[@]} == 0 ]] ||
    need_packages "$(install_hint "${debian[*]}" "cli11-devel fmt-devel libzstd-devel" "cli11 fmt zstd")" "${debian[@]}"
}

# Of the tests alone; CMake leaves them out where there is none.
need_googletest() {
  { has_header gtest/gtest.h && has_header gmock/gmock.h; } ||
    need_packages "$(install_hint "libgtest-dev libgmock-dev" "gtest-devel gmock-devel" gtest)" libgtest-dev libgmock-dev
}

# Tries once: without these headers the rungs in CuTe are waived, and nothing else lacks them. The empty folder remembers.
need_cutlass() {
  local part=$deps/cutlass.part pip=(python3 -m pip)
  [[ -z ${LADDER_CUTLASS:-} && ! -d $deps/cutlass ]] || return 0
  [[ ! -e /usr/include/cute/tensor.hpp && ! -e /usr/local/include/cute/tensor.hpp ]] || return 0
  need_python3
  if ! "${pip[@]}" --version &>/dev/null; then
    optional=yes make_venv || return 0
    pip=("$venv/bin/pip")
  fi
  say "setup: CUTLASS's headers from its Python wheel into .deps/cutlass (6 MB to fetch)"
  rm -rf "$part"
  mkdir -p "$deps/cutlass"
  optional=yes quietly "unpacking CUTLASS's wheel" \
    "The rungs in CuTe do without, waived; to try again: rm -r .deps/cutlass. By hand: LADDER_CUTLASS=DIR, with DIR/include/cute" \
    "${pip[@]}" install --retries 1 --no-deps --target "$part" --requirement requirements/cutlass.txt || return 0
  mv "$part/cutlass_library/source/include" "$deps/cutlass/"
  rm -rf "$part"
}

# need_build: compiler, libraries, CMake and Ninja.
need_build() {
  have c++ || die "needs a C++20 compiler: $(install_hint g++ gcc-c++ gcc)"
  need_cuda
  need_libraries
  need_cutlass
  if ! have ninja || ! at_least 3.25 "$(cmake --version 2>/dev/null | sed -n 's/cmake version //p')"; then
    need_python build
  fi
}
