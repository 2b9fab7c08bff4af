#include "experiments/nsys/database.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/base/error.hpp"

namespace manyworlds::experiments::nsys {
namespace {

using core::InputError;

constexpr int kMaxValueBytes = 16 << 20;

[[noreturn]] void fail(sqlite3* database, const std::string& path) {
  const int code = sqlite3_errcode(database);
  if (code == SQLITE_NOTADB) throw InputError("is no database of SQLite", path);
  throw InputError(fmt::format("cannot be read as a database of SQLite: {}", sqlite3_errmsg(database)), path);
}

/// Throws InputError for what is no file, and for one that is compressed.
void check_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw InputError(fmt::format("cannot be read: {}", std::strerror(errno)), path);
  if (!S_ISREG(status.st_mode)) throw InputError("is no file", path);
  std::ifstream file(path, std::ios::binary);
  char first[2] = {};
  if (file.read(first, 2) && first[0] == '\x1f' && first[1] == '\x8b')
    throw InputError("is compressed; unpack it, as SQLite reads the file itself", path);
}

}  // namespace

bool Rows::next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail(sqlite3_db_handle(statement_.get()), *path_);
  return false;
}

std::optional<std::int64_t> Rows::whole(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::nullopt;
  return sqlite3_column_int64(statement_.get(), column);
}

std::optional<std::string_view> Rows::text(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return std::nullopt;
  return std::string_view(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

std::string_view Rows::bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

Database::Database(std::string path) : path_(std::move(path)) {
  check_file(path_);
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path_.c_str(), &database, SQLITE_OPEN_READONLY, nullptr);
  database_.reset(database);
  if (code != SQLITE_OK) fail(database, path_);
  // What a file says of functions and views is not run.
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  std::vector<std::string> tables;
  Rows names = prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'");
  while (names.next())
    if (const auto name = names.text(0)) tables.emplace_back(*name);
  for (const std::string& table : tables) {
    if (table.find('"') != std::string::npos) continue;
    std::set<std::string>& columns = columns_[table];
    Rows found = prepare(fmt::format("PRAGMA table_info(\"{}\")", table));
    while (found.next())
      if (const auto name = found.text(1)) columns.emplace(*name);
  }
}

bool Database::has(const std::string& table, const std::string& column) const {
  const auto found = columns_.find(table);
  return found != columns_.end() && found->second.contains(column);
}

Rows Database::prepare(const std::string& query) const {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    fail(database_.get(), path_);
  return {statement, path_};
}

Rows Database::rows(const std::string& table, const std::vector<Column>& columns) const {
  std::string query;
  for (const Column& column : columns) {
    const bool is_there = has(table, column.name);
    if (!is_there && column.is_required)
      throw InputError(fmt::format("has a table {} without a column '{}': export it with another version of nsys",
                                   table, column.name),
                       path_);
    query += fmt::format("{}{}", query.empty() ? "SELECT " : ", ",
                         is_there ? fmt::format("\"{}\"", column.name) : std::string("NULL"));
  }
  return prepare(fmt::format("{} FROM \"{}\"", query, table));
}

std::string Database::string_of(std::int64_t id) const {
  if (!has("StringIds", "id") || !has("StringIds", "value")) return {};
  Rows found = prepare(fmt::format("SELECT \"value\" FROM \"StringIds\" WHERE \"id\" = {} LIMIT 1", id));
  return found.next() ? std::string(found.text(0).value_or("")) : std::string();
}

}  // namespace manyworlds::experiments::nsys
