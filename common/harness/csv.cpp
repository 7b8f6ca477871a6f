#include "common/harness/csv.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "common/harness/error.h"
#include "common/text.h"

namespace ladder {
namespace {

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\n") == std::string::npos) return field;
  std::string text = "\"";
  for (const char c : field) {
    if (c == '"') text += '"';
    text += c == '\n' ? ' ' : c;
  }
  return text + '"';
}

}  // namespace

std::vector<std::string> split_csv_line(const std::string& line) {
  std::vector<std::string> fields(1);
  bool inside = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && inside && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[i++];
    else if (line[i] == '"')
      inside = !inside;
    else if (line[i] == ',' && !inside)
      fields.emplace_back();
    else if (line[i] != '\r')
      fields.back() += line[i];
  }
  return fields;
}

CsvFile::CsvFile(const std::string& path, const std::vector<std::string>& columns)
    : path_(path), columns_(columns.size()) {
  const std::string header = joined(columns, ",");
  std::error_code ignored;  // what cannot be made here cannot be opened below, which says why
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);

  std::string text;
  if (std::ifstream old(path, std::ios::binary); old) {
    std::stringstream all;
    all << old.rdbuf();
    text = all.str();
  }
  const size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  file_ = std::fopen(path.c_str(), "a");
  if (!file_) throw UsageError(formatted("cannot write '{}': {}", path, std::strerror(errno)));

  std::stringstream lines(text.substr(0, whole));
  std::string line;
  if (whole > 0) {
    std::getline(lines, line);
    if (line != header) throw UsageError(formatted("'{}' holds other columns; choose another file", path));
    while (std::getline(lines, line)) {
      rows_.push_back(split_csv_line(line));
      if (rows_.back().size() != columns_)
        throw UsageError(
            formatted("'{}' has a line of {} fields where {} belong: {}", path, rows_.back().size(), columns_, line));
    }
  }
  if (whole < text.size()) std::filesystem::resize_file(path, whole);
  if (whole == 0) {
    std::fprintf(file_, "%s\n", header.c_str());
    std::fflush(file_);
  }
}

CsvFile::~CsvFile() {
  if (file_) std::fclose(file_);
}

void CsvFile::append(const std::vector<std::string>& fields) {
  if (fields.size() != columns_) throw std::logic_error("a row has a field per column");
  std::vector<std::string> text;
  for (const std::string& field : fields) text.push_back(quoted(field));
  const std::string line = joined(text, ",") + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0)
    throw std::runtime_error(formatted("cannot write '{}': {}", path_, std::strerror(errno)));
}

}  // namespace ladder
