// Rows on disk, each written whole and at once: an interrupted run keeps what it measured.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace ladder {

/// Splits one line at commas outside double quotes (RFC 4180, without line breaks inside fields).
std::vector<std::string> split_csv_line(const std::string& line);

class CsvFile {
 public:
  /// Opens `path` for appending, making it and its folders where they do not exist. A last line without its end, left
  /// by a killed run, is dropped. Throws UsageError where the file cannot be written or has other columns.
  CsvFile(const std::string& path, const std::vector<std::string>& columns);
  ~CsvFile();
  CsvFile(const CsvFile&) = delete;
  CsvFile& operator=(const CsvFile&) = delete;

  /// What the file held when it was opened: a field per column.
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

  /// A field per column. Throws std::runtime_error where the disk is full.
  void append(const std::vector<std::string>& fields);

 private:
  std::string path_;
  size_t columns_;
  std::vector<std::vector<std::string>> rows_;
  std::FILE* file_ = nullptr;
};

}  // namespace ladder
