#include "common/harness/csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "common/harness/error.h"

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

CsvFile::CsvFile(const std::string& path, std::vector<std::string> columns)
    : path_(path), columns_(std::move(columns)) {
  const std::string header = fmt::format("{}", fmt::join(columns_, ","));
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
  if (!file_) throw UsageError(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));

  std::stringstream lines(text.substr(0, whole));
  std::string line;
  if (whole > 0) {
    std::getline(lines, line);
    if (line != header) throw UsageError(fmt::format("'{}' holds other columns; choose another file", path));
    while (std::getline(lines, line)) {
      const std::vector<std::string> fields = split_csv_line(line);
      if (fields.size() != columns_.size())
        throw UsageError(fmt::format("'{}' has a line of {} fields where {} belong: {}", path, fields.size(),
                                     columns_.size(), line));
      Row row;
      for (size_t i = 0; i < fields.size(); ++i) row[columns_[i]] = fields[i];
      rows_.push_back(row);
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

void CsvFile::append(const Row& row) {
  std::vector<std::string> fields;
  for (const std::string& column : columns_) {
    const auto field = row.find(column);
    fields.push_back(field == row.end() ? "" : quoted(field->second));
  }
  const std::string line = fmt::format("{}\n", fmt::join(fields, ","));
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0)
    throw std::runtime_error(fmt::format("cannot write '{}': {}", path_, std::strerror(errno)));
}

}  // namespace ladder
