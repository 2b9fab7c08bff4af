// A database of SQLite, read row by row. Tables and columns may be there or not, as exports of other versions have
// others: what must be there is refused by its name.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::nsys {

struct Column {
  const char* name;
  bool is_required = true;  // otherwise it is null where a table does not have it
};

/// The rows of a selection. Texts and bytes are valid until the next row.
class Rows {
 public:
  /// Goes to the next row; false behind the last. Throws core::InputError for a damaged database.
  bool next();

  /// Return the value of a column by its place in the selection; nothing if it is null.
  std::optional<std::int64_t> whole(int column) const;
  std::int64_t whole(int column, std::int64_t otherwise) const { return whole(column).value_or(otherwise); }
  std::optional<std::string_view> text(int column) const;
  std::string_view bytes(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Rows(sqlite3_stmt* statement, const std::string& path) : statement_(statement), path_(&path) {}

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  const std::string* path_;
};

class Database {
 public:
  /// Opens a file for reading. Throws core::InputError if it cannot be read or is no database.
  explicit Database(std::string path);

  bool has(const std::string& table) const { return columns_.contains(table); }
  bool has(const std::string& table, const std::string& column) const;
  /// Selects columns of a table that there is. Throws core::InputError, naming both, for one that must be there and is
  /// not.
  Rows rows(const std::string& table, const std::vector<Column>& columns) const;
  /// Returns the text of a number in StringIds; empty if there is none.
  std::string string_of(std::int64_t id) const;
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  Rows prepare(const std::string& query) const;

  std::string path_;
  std::unique_ptr<sqlite3, Close> database_;
  std::map<std::string, std::set<std::string>> columns_;  // by table
};

}  // namespace manyworlds::experiments::nsys
