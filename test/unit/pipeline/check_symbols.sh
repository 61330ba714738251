#!/bin/sh
# check_symbols.sh OBJECT...: fails when a fast-path object calls an allocator, a lock, exception
# machinery or a log. Names what it found.
set -eu
forbidden='__cxa_(throw|rethrow|allocate_exception|begin_catch|guard)|_Zn[wa]|_Zd[la]P|^(malloc|calloc|realloc|free|aligned_alloc)$|pthread_(mutex|rwlock|cond|spin)|_ZSt[0-9]+__throw|__throw_|spdlog|^(printf|puts|write|read|ioctl|syscall)$|_ZNSt8functionI'
found=$(for object in "$@"; do nm -u "$object" | awk '{print $NF}'; done | grep -E "$forbidden" || true)
if [ -n "$found" ]; then
  echo "the fast path must not call:"
  echo "$found" | c++filt | sort -u
  exit 1
fi
count=$(for object in "$@"; do nm -u "$object"; done | wc -l)
[ "$count" -gt 0 ] || { echo "no symbols read: wrong file?"; exit 1; }
