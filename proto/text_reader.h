#pragma once

#include <istream>

#include "proto/event_buffer.h"

namespace sluice::codec {

/// Reads a YAML stream of documents by yaml-cpp's events; never builds a tree. Aliases are refused
/// (a few lines of them can stand for gigabytes). Throws SyntaxError.
void read_yaml(std::istream& in, EventSink& sink);

/// Reads JSON values one after another (RFC 8259), at most 100 levels deep. yaml-cpp would keep
/// every token of a flow collection until its end. Throws SyntaxError.
void read_json(std::istream& in, EventSink& sink);

/// JSON if the first character that is no blank is '{' or '[', as kubectl decides; else YAML.
/// A byte order mark is skipped. Throws SyntaxError.
void read_text(std::istream& in, EventSink& sink);

}  // namespace sluice::codec
