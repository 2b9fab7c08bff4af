#include "farm/cli/options/output_file.hpp"

#include <ostream>
#include <streambuf>
#include <vector>

namespace manyworlds::farm::commands {
namespace {

constexpr std::size_t kPieceBytes = 64u << 10;

/// Passes what a stream is given on to a file, piece by piece.
class PieceBuffer final : public std::streambuf {
 public:
  explicit PieceBuffer(OutputFile& file) : file_(file), piece_(kPieceBytes) { begin(); }

 private:
  void begin() { setp(piece_.data(), piece_.data() + piece_.size()); }

  int_type overflow(int_type next) override {
    sync();
    return traits_type::eq_int_type(next, traits_type::eof()) ? traits_type::not_eof(next)
                                                              : sputc(traits_type::to_char_type(next));
  }
  int sync() override {
    file_.append({pbase(), static_cast<std::size_t>(pptr() - pbase())});
    begin();
    return 0;
  }

  OutputFile& file_;
  std::vector<char> piece_;
};

}  // namespace

OutputFile::OutputFile(const std::string& path) : file_(path) {
  if (path.ends_with(".gz"))
    compressed_.emplace([this](std::string_view piece) { bytes_ += piece.size(), file_.append(piece); });
}

void OutputFile::append(std::string_view bytes) {
  if (compressed_) return compressed_->append(bytes);
  bytes_ += bytes.size();
  file_.append(bytes);
}

std::uint64_t OutputFile::commit() {
  if (compressed_) compressed_->finish();
  file_.commit();
  return bytes_;
}

std::uint64_t write_output(const std::string& path, const std::function<void(std::ostream&)>& write) {
  OutputFile file(path);
  PieceBuffer buffer(file);
  std::ostream stream(&buffer);
  stream.exceptions(std::ios::badbit);  // so that what the file throws is thrown on
  write(stream);
  stream.flush();
  return file.commit();
}

}  // namespace manyworlds::farm::commands
