#include "ptx/lexer.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>

#include "ptx/ir.h"

namespace sim::ptx {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

std::string shown(char c) {
  if (c >= ' ' && c <= '~') return std::string("'") + c + "'";
  constexpr char digits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return std::string("byte 0x") + digits[byte >> 4] + digits[byte & 15];
}

}  // namespace

void Lexer::skip_blanks() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '\n') {
      ++line_;
      ++position_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++position_;
    } else if (c == '/' && at(position_ + 1) == '/') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (c == '/' && at(position_ + 1) == '*') {
      const size_t end = text_.find("*/", position_ + 2);
      if (end == text_.npos) throw PtxError(line_, "this comment has no end; expected */");
      line_ += static_cast<uint32_t>(std::count(text_.begin() + position_, text_.begin() + end, '\n'));
      position_ = end + 2;
    } else {
      return;
    }
  }
}

Token Lexer::next() {
  skip_blanks();
  Token token;
  token.line = line_;
  if (position_ == text_.size()) return token;

  const size_t start = position_;
  const char c = text_[start];
  if (is_name_start(c)) {
    while (is_name(at(position_))) ++position_;
    token.kind = Token::Kind::identifier;
    token.text = text_.substr(start, position_ - start);
  } else if (c == '.' && is_name(at(start + 1))) {
    ++position_;
    // .mbarrier::complete_tx::bytes is one modifier.
    while (is_name(at(position_)) ||
           (at(position_) == ':' && at(position_ + 1) == ':' && is_name(at(position_ + 2)) && (position_ += 2)))
      ++position_;
    token.kind = Token::Kind::directive;
    token.text = text_.substr(start + 1, position_ - start - 1);
  } else if (is_digit(c)) {
    return number();
  } else if (c == '"') {
    const size_t end = text_.find_first_of("\"\n", start + 1);
    if (end == text_.npos || text_[end] == '\n') throw PtxError(line_, "this string has no end; expected \"");
    position_ = end + 1;
    token.kind = Token::Kind::string;
    token.text = text_.substr(start + 1, end - start - 1);
  } else if (std::string_view("()[]{}<>,;:|=+-!@*").find(c) != std::string_view::npos) {
    ++position_;
    token.kind = Token::Kind::punctuation;
    token.text = text_.substr(start, 1);
  } else {
    throw PtxError(line_, "no PTX token starts with " + shown(c));
  }
  return token;
}

// "Constants": 0x hexadecimal, 0b binary, 0 octal, decimal, each with an optional U; 0f and 0d with the bits of a
// floating-point number; a decimal fraction is FP64.
Token Lexer::number() {
  Token token;
  token.line = line_;
  const size_t start = position_;
  while (is_name(at(position_)) || (at(position_) == '.' && is_digit(at(position_ + 1))) ||
         ((at(position_) == '+' || at(position_) == '-') && at(start + 1) != 'x' && at(start + 1) != 'X' &&
          (at(position_ - 1) == 'e' || at(position_ - 1) == 'E') && is_digit(at(start)) &&
          is_digit(at(position_ + 1)) && text_.substr(start, position_ - start).find('.') != std::string_view::npos))
    ++position_;
  token.text = text_.substr(start, position_ - start);

  const auto fail = [&](const std::string& expected) {
    throw PtxError(line_, "\"" + std::string(token.text) + "\" is no number; expected " + expected);
  };
  const auto integer = [&](std::string_view digits, int base) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), token.bits, base);
    if (error != std::errc() || end != digits.data() + digits.size()) fail("an integer of up to 64 bits");
  };

  const char mark = at(start) == '0' && position_ > start + 1 ? static_cast<char>(text_[start + 1] | 0x20) : '\0';
  if (mark == 'f' || mark == 'd') {
    token.kind = mark == 'f' ? Token::Kind::float32 : Token::Kind::float64;
    if (token.text.size() != (mark == 'f' ? 10U : 18U))
      fail(mark == 'f' ? "8 hexadecimal digits" : "16 hexadecimal digits");
    integer(token.text.substr(2), 16);
  } else if (mark != 'x' && token.text.find('.') != std::string_view::npos) {
    token.kind = Token::Kind::float64;
    double value = 0;
    const auto [end, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    if (error != std::errc() || end != token.text.data() + token.text.size()) fail("a decimal fraction");
    token.bits = std::bit_cast<uint64_t>(value);
  } else {
    token.kind = Token::Kind::integer;
    std::string_view digits = token.text;
    if (digits.back() == 'U') digits.remove_suffix(1);
    if (mark == 'x')
      integer(digits.substr(2), 16);
    else if (mark == 'b')
      integer(digits.substr(2), 2);
    else
      integer(digits, digits.size() > 1 && digits[0] == '0' ? 8 : 10);
  }
  return token;
}

}  // namespace sim::ptx
