#!/bin/sh
# Fails when a fast-path object calls the allocator, a lock or the exception machinery.
# usage: fast_path_symbols.sh OBJECT... [--only REGEX OBJECT...]   after --only: objects so named
set -eu
only=""
found=0
bad=0
while [ $# -gt 0 ]; do
  if [ "$1" = --only ]; then
    only=$2
    shift 2
    continue
  fi
  object=$1
  shift
  if [ -n "$only" ] && ! basename "$object" | grep -qxE "$only"; then
    continue
  fi
  found=$((found + 1))
  # _Znwm, _Znam: operator new; __cxa_*: throw; _ZSt..throw: the standard library's throws.
  symbols=$(nm -u "$object" | awk '{print $NF}' |
    grep -E '^(_Zn[wa]|malloc$|calloc$|realloc$|__cxa_(throw|allocate)|_ZSt[0-9]+__throw|pthread_mutex|_ZNSt5mutex)' || true)
  if [ -n "$symbols" ]; then
    echo "$object calls:" $symbols
    bad=1
  fi
done
[ "$found" -gt 0 ] || { echo "no object given"; exit 2; }
exit $bad
