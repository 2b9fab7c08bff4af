// Files of text as users give them: regular ones, pipes that somebody writes to, and what is neither.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <thread>

#include "core/base/error.hpp"
#include "experiments/text/gzip_file.hpp"
#include "experiments/text/text.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using Catch::Contains;
using experiments::import::kMaxTextBytes;
using experiments::import::read_table_text;
using experiments::import::read_text;

namespace {

/// Writes `text` compressed and returns the path.
std::string compressed(const TemporaryFolder& folder, const std::string& text) {
  const std::string path = (folder / "text.gz").string();
  const gzFile file = gzopen(path.c_str(), "wb");
  REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size()));
  gzclose(file);
  return path;
}

}  // namespace

TEST_CASE("a file of up to 8 MiB is read whole, byte for byte, and a larger one is refused") {
  const TemporaryFolder folder;
  const std::string most = std::string(kMaxTextBytes - 2, 'x') + '\0' + '\n';
  folder.put("empty", "");
  folder.put("most", most);
  folder.put("more", most + "x");
  CHECK(read_text((folder / "empty").string()).empty());
  CHECK(read_text((folder / "most").string()) == most);
  CHECK_THROWS_WITH(read_text((folder / "more").string()), Contains("more: larger than 8388608 bytes"));
  CHECK_THROWS_WITH(read_text("/dev/zero"), Contains("larger than 8388608 bytes"));
}

TEST_CASE("a file that says no size is read to its end") {
  CHECK_THAT(read_text("/proc/self/maps"), Contains("[stack]"));
}

TEST_CASE("compressed text is read up to the limit, and beyond 64 MiB up to 64 times its bytes on the disk") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; text.size() < 3'000'000; ++i) text += std::to_string(i) + "\n";
  const std::string path = compressed(folder, text);
  CHECK(read_table_text(path) == text);
  CHECK(read_table_text(path, text.size()) == text);
  CHECK_THROWS_WITH(read_table_text(path, text.size() - 1), Contains("text.gz: larger than"));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  CHECK_THROWS_WITH(read_table_text(path), Contains("text.gz: its compressed data are damaged"));
  const std::string zeros = compressed(folder, std::string((64u << 20) + 1, '0'));
  CHECK_THROWS_WITH(read_table_text(zeros, 1u << 30), Contains("larger than 67108864 bytes"));
  CHECK(read_table_text(compressed(folder, "")).empty());
}

TEST_CASE("a file is read in pieces, compressed or not, until it ends or is damaged") {
  const TemporaryFolder folder;
  const std::string text = "a\nb\nc\n";
  folder.put("plain", text);
  for (const std::string& path : {(folder / "plain").string(), compressed(folder, text)}) {
    experiments::import::GzipFile file(path, "a log");
    std::string read, piece(4, ' ');
    while (const std::size_t bytes = file.read(piece.data(), piece.size())) read += piece.substr(0, bytes);
    CHECK(read == text);
    CHECK(file.offset() == static_cast<std::int64_t>(std::filesystem::file_size(path)));
  }
  CHECK_THROWS_WITH(experiments::import::GzipFile(folder.path.string(), "a log"), Contains("is a folder; give a log"));
  const std::string torn = compressed(folder, std::string(100'000, 'x') + text);
  std::filesystem::resize_file(torn, std::filesystem::file_size(torn) - 12);
  experiments::import::GzipFile file(torn, "a log");
  std::string all(200'000, ' ');
  CHECK_THROWS_WITH(
      [&] {
        while (file.read(all.data(), all.size()) > 0) {
        }
      }(),
      Contains("compressed data are damaged behind byte"));
}

TEST_CASE("what is no file is refused by what it is") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_text(folder.path.string()), Contains("is a folder"));
  CHECK_THROWS_WITH(read_text((folder / "absent").string()), Contains("No such file"));
  std::filesystem::create_symlink("loop", folder / "loop");
  CHECK_THROWS_WITH(read_text((folder / "loop").string()), Contains("symbolic links"));
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder / "socket").c_str(), sizeof(address.sun_path) - 1);
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  CHECK_THROWS_WITH(read_text((folder / "socket").string()), Contains("is a socket"));
  ::close(socket);
}

TEST_CASE("a pipe is read to the end of who writes to it, and refused where nobody does") {
  const TemporaryFolder folder;
  const std::string path = (folder / "pipe").string();
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_text(path), Contains("pipe and nobody writes to it"));

  // The writer has opened it when the reader comes, and says more than fits into a pipe.
  const std::string said(1'000'000, 'y');
  const int writer = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(writer >= 0);
  std::thread writing([&] {
    std::size_t done = 0;
    while (done < said.size()) {
      const auto put = ::write(writer, said.data() + done, said.size() - done);
      if (put < 0) break;
      done += static_cast<std::size_t>(put);
    }
    ::close(writer);
  });
  CHECK(read_text(path) == said);
  writing.join();
}
