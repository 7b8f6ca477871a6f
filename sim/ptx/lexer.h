// PTX text to tokens ("Syntax" of the PTX ISA: source format, comments, identifiers, constants).
#pragma once

#include <cstdint>
#include <string_view>

namespace sim::ptx {

struct Token {
  enum class Kind : uint8_t {
    end,
    identifier,   ///< name, $label, %register, _
    directive,    ///< .entry, .f32, .shared::cta: everything that starts with a dot; `text` has no dot
    integer,      ///< bits
    float32,      ///< 0f3F800000: bits
    float64,      ///< 0d3FF0000000000000, 1.5: bits
    string,       ///< "nounroll"; `text` has no quotes
    punctuation,  ///< one character
  };
  Kind kind = Kind::end;
  std::string_view text;  ///< into the source
  uint32_t line = 1;
  uint64_t bits = 0;

  bool is(char c) const { return kind == Kind::punctuation && text[0] == c; }
  bool is_directive(std::string_view name) const { return kind == Kind::directive && text == name; }
};

/// Hands out one token after another; throws PtxError where the text has none.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();

 private:
  char at(size_t position) const { return position < text_.size() ? text_[position] : '\0'; }
  void skip_blanks();
  Token number();

  std::string_view text_;
  size_t position_ = 0;
  uint32_t line_ = 1;
};

}  // namespace sim::ptx
