#!/usr/bin/env bash
# A launcher of compilers for a copy of a checkout: an object that the checkout has built is taken from there.
#   usage: take_object.sh CHECKOUT COMPILER ARGUMENT...   in the copy's build folder
# COMPILE in the environment: objects whose path this regular expression matches are compiled all the same.
set -euo pipefail
built=$1/build
shift
source='' object='' before=''
for word in "$@"; do
  case $before in
    -c) source=$word ;;
    -o) object=$word ;;
  esac
  before=$word
done
[[ $built/$object -nt $source && ! $object =~ ${COMPILE:-^$} ]] || exec "$@"
cp "$built/$object" "$object"
