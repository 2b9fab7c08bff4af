#include "io/ranking/diff.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/base/error.hpp"
#include "io/results/canonical_bytes.hpp"

namespace manyworlds::io {

namespace {

bool same(std::int64_t left, std::int64_t right) {
  return left == right;
}
bool same(double left, double right) {
  return same_value(left, right);
}
bool same(const std::string& left, const std::string& right) {
  return left == right;
}

/// Returns a column's metadata as text: "step_time_s [s] real: …".
std::string describe_column(const Column& column) {
  return fmt::format("{} [{}] {}: {}", column.name, column.unit, name_of(column.type()), column.description);
}

bool same_metadata(const Column& left, const Column& right) {
  return left.name == right.name && left.unit == right.unit && left.description == right.description &&
         left.type() == right.type();
}

Comparison cannot_compare(const std::string& reason) {
  Comparison comparison;
  comparison.verdict = Verdict::cannot_compare;
  comparison.reason = reason;
  return comparison;
}

class Comparer {
 public:
  Comparison result;

  void structure(const std::string& where, const std::string& left, const std::string& right) {
    structure(where, left == right, left, right);
  }
  /// `same` is passed separately because different structures may have equal descriptions.
  void structure(const std::string& where, bool same, const std::string& left, const std::string& right) {
    if (same) return;
    ++result.structural;
    note({where, {}, left, right});
  }

  void spec(const std::string& left, const std::string& right) {
    if (left == right) return;
    const auto [at, other] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
    const auto line = static_cast<std::size_t>(std::count(left.begin(), at, '\n'));
    std::string mine = line_of(left, line), theirs = line_of(right, line);
    if (mine == theirs) {  // one text is a prefix of the other and lacks only a line feed
      mine = fmt::format("{} bytes", left.size());
      theirs = fmt::format("{} bytes", right.size());
    }
    structure("spec", mine, theirs);
  }

  void table(const std::string& name, const Table& left, const Table& right) {
    structure(name, fmt::format("{} rows", left.rows()), fmt::format("{} rows", right.rows()));
    const std::size_t width = std::max(left.columns.size(), right.columns.size());
    std::set<std::size_t> rows;
    for (std::size_t i = 0; i < width; ++i) {
      const Column* a = i < left.columns.size() ? &left.columns[i] : nullptr;
      const Column* b = i < right.columns.size() ? &right.columns[i] : nullptr;
      const std::string where = name + "/" + (a ? a->name : b->name);
      structure(where, a && b && same_metadata(*a, *b), a ? describe_column(*a) : "(no such column)",
                b ? describe_column(*b) : "(no such column)");
      if (a && b && a->name == b->name && a->values.index() == b->values.index()) column(where, *a, *b, rows);
    }
    result.rows += rows.size();
  }

 private:
  void note(Difference difference) {
    result.verdict = Verdict::different;
    if (!result.first) result.first = std::move(difference);
  }

  static std::string line_of(const std::string& text, std::size_t line) {
    std::size_t begin = 0;
    for (; line > 0; --line) {
      const std::size_t end = text.find('\n', begin);
      if (end == std::string::npos) return "(end of text)";
      begin = end + 1;
    }
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  void column(const std::string& where, const Column& left, const Column& right, std::set<std::size_t>& rows) {
    const std::uint64_t before = result.values;
    std::visit(
        [&](const auto& a) {
          const auto& b = std::get<std::decay_t<decltype(a)>>(right.values);
          for (std::size_t row = 0; row < std::min(a.size(), b.size()); ++row) {
            if (same(a[row], b[row])) continue;
            ++result.values;
            rows.insert(row);
            note({where, row, fmt::format("{}", a[row]), fmt::format("{}", b[row])});
          }
        },
        left.values);
    if (result.values > before) ++result.columns;
  }
};

}  // namespace

Comparison compare_results(const Results& left, const Results& right) {
  Comparer comparer;
  comparer.spec(left.spec, right.spec);
  comparer.structure("experiments (axes)", left.axis_names == right.axis_names,
                     fmt::format("{}", fmt::join(left.axis_names, " ")),
                     fmt::format("{}", fmt::join(right.axis_names, " ")));
  const auto tables = result_tables(left);
  const auto others = result_tables(right);
  for (std::size_t i = 0; i < tables.size(); ++i) comparer.table(tables[i].first, *tables[i].second, *others[i].second);
  MANYWORLDS_CHECK((comparer.result.verdict == Verdict::same) == (canonical_bytes(left) == canonical_bytes(right)),
                   "the tables of two answers and their bytes disagree on whether they are the same");
  return comparer.result;
}

Comparison compare_results(const std::filesystem::path& left, const std::filesystem::path& right) {
  try {
    return compare_results(read_results(left), read_results(right));
  } catch (const core::InputError& error) {
    return cannot_compare(error.what());
  } catch (const core::IoError& error) {
    return cannot_compare(error.what());
  }
}

std::string describe(const Comparison& comparison) {
  if (comparison.verdict == Verdict::same) return "same results\n";
  if (comparison.verdict == Verdict::cannot_compare) return fmt::format("cannot compare: {}\n", comparison.reason);
  const Difference& first = *comparison.first;
  std::string text = fmt::format("different results\nfirst difference in {}{}: {} | {}\n", first.where,
                                 first.row ? fmt::format(", row {}", *first.row) : "", first.left, first.right);
  if (comparison.values > 0)
    text += fmt::format("{} values in {} columns and {} rows differ\n", comparison.values, comparison.columns,
                        comparison.rows);
  if (comparison.structural > 0) text += fmt::format("{} differences of layout or spec\n", comparison.structural);
  return text;
}

}  // namespace manyworlds::io
