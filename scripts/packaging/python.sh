# The Python package as a wheel, and as python3-ddl for Debian. Sourced by scripts/package with the repository root as
# working directory.
# shellcheck shell=bash

# python_wheel WORK OUTPUT [OPTION...]: writes the wheel into OUTPUT, and prints its path. Needs no network.
# DDL_INSTALLED: see python/setup.py.
python_wheel() { wheel_of . "$@"; }

# horovod_wheel WORK OUTPUT: the same for the distribution ddl-horovod, which is for every system.
horovod_wheel() { wheel_of ddl_horovod "$@"; }

# wheel_of FOLDER WORK OUTPUT [OPTION...]: of a folder in python/. The build leaves files beside the package, so it is
# one of a copy in WORK.
wheel_of() {
  local folder=$1 work=$2 output=$3 wheel
  shift 3
  rm -rf "$work"
  mkdir -p "$work/wheel"
  cp -r python "$work/sources"
  rm -rf "$work/sources/build" "$work/sources"/*.egg-info
  DDL_INCLUDE=$PWD/runtime/include /usr/bin/python3 -m pip wheel --quiet --no-build-isolation --no-deps --no-index \
    --disable-pip-version-check --wheel-dir "$work/wheel" "$@" "$work/sources/$folder" || return
  wheel=$(cd "$work/wheel" && echo *.whl)
  mv "$work/wheel/$wheel" "$output/"
  printf '%s\n' "$output/$wheel"
}

# python_deb WORK OUTPUT: the package alone, which takes the libddl of the other Debian packages. Prints its path.
python_deb() {
  local work=$1 output=$2 version root modules documents wheel size deb
  local contact="The authors of ddlrun <ddlrun@localhost>"
  version=$(sed -n 's/^version = "\(.*\)"$/\1/p' python/pyproject.toml)
  wheel=$(python_wheel "$work" "$work") || return
  root=$work/python3-ddl
  modules=$root/usr/lib/python3/dist-packages documents=$root/usr/share/doc/python3-ddl
  mkdir -p "$modules" "$documents" "$root/DEBIAN"
  /usr/bin/python3 -m zipfile -e "$wheel" "$modules"
  rm -f "$modules"/*.dist-info/RECORD # pip's list of what it may remove; this is dpkg's to remove
  cp scripts/packaging/debian-copyright "$documents/copyright"
  printf 'ddlrun (%s) unstable; urgency=medium\n\n  * CHANGELOG.md of ddlrun has the changes.\n\n -- %s  %s\n' \
    "$version" "$contact" "$(date -u -R)" | gzip -9n >"$documents/changelog.gz"
  size=$(du -sk "$root/usr" | cut -f1)
  cat >"$root/DEBIAN/control" <<CONTROL
Package: python3-ddl
Version: $version
Architecture: all
Maintainer: $contact
Installed-Size: $size
Section: python
Priority: optional
Depends: python3 (>= 3.8), python3-cffi-backend
Recommends: python3-cloudpickle, python3-numpy
Suggests: python3-torch
Description: collectives of libddl for programs in Python
 Training programs of several processes exchange NumPy's arrays, PyTorch's
 tensors and other buffers by libddl. The module ddl.torch has Horovod's names.
 .
 libddl itself comes with ddlrun, which tells its ranks where it is.
CONTROL
  chmod -R u=rwX,go=rX "$root"
  deb=python3-ddl_${version}_all.deb
  dpkg-deb --root-owner-group --build "$root" "$output/$deb" >/dev/null || return
  printf '%s\n' "$output/$deb"
}
