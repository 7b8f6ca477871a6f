// Rows on disk, each written whole and at once: an interrupted run keeps what it measured.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace ladder {

using Row = std::map<std::string, std::string>;  // column name -> value; a missing column is empty

/// Splits one line at commas outside double quotes (RFC 4180, without line breaks inside fields).
std::vector<std::string> split_csv_line(const std::string& line);

class CsvFile {
 public:
  /// Opens `path` for appending, making it and its folders where they do not exist. A last line without its end, left
  /// by a killed run, is dropped. Throws UsageError where the file cannot be written or has other columns.
  CsvFile(const std::string& path, std::vector<std::string> columns);
  ~CsvFile();
  CsvFile(const CsvFile&) = delete;
  CsvFile& operator=(const CsvFile&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<Row>& rows() const { return rows_; }  ///< what the file held when it was opened
  void append(const Row& row);                            ///< throws std::runtime_error where the disk is full

 private:
  std::string path_;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
  std::FILE* file_ = nullptr;
};

}  // namespace ladder
