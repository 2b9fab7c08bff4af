// Files of text as users give them: regular ones, pipes that somebody writes to, and what is neither.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "core/base/error.hpp"
#include "experiments/text/text.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using Catch::Contains;
using experiments::import::kMaxTextBytes;
using experiments::import::read_text;

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
