// Reads pieces of a file or device, several at a time, and goes on with each as it comes.
//
//   async URI
//
// c++ -std=c++17 async.cpp $(pkg-config --cflags --libs gpunvme)
#include <gpunvme.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

struct Closer {
  void operator()(gpunvme_storage *storage) const { gpunvme_close(storage); }
  void operator()(gpunvme_request *request) const { gpunvme_request_free(request); }
};
using Storage = std::unique_ptr<gpunvme_storage, Closer>;
using Request = std::unique_ptr<gpunvme_request, Closer>;

int check(int code) {
  if (code < 0) {
    throw std::runtime_error(gpunvme_last_error());
  }
  return code;
}

Storage open(const char *uri) {
  gpunvme_storage *storage = nullptr;
  check(gpunvme_open(uri, nullptr, 0, &storage));
  return Storage(storage);
}

Request submit(const Storage &storage, const gpunvme_range &range) {
  gpunvme_request *request = nullptr;
  check(gpunvme_submit_read(storage.get(), &range, 1, &request));
  return Request(request);
}

std::uint64_t sum(const Storage &storage, const gpunvme_range &range) {
  std::string bytes(range.bytes, '\0');
  check(gpunvme_copy_to_host(storage.get(), &bytes[0], range.address, range.bytes));
  std::uint64_t all = 0;
  for (unsigned char byte : bytes) {
    all += byte;
  }
  return all;
}

void run(const char *uri) {
  constexpr std::uint64_t kPiece = 1 << 20;
  constexpr std::size_t kAtATime = 4;
  Storage storage = open(uri);
  gpunvme_info info;
  check(gpunvme_get_info(storage.get(), &info));
  std::uint64_t memory = 0;
  check(gpunvme_allocate(storage.get(), kPiece * kAtATime, &memory));

  struct Piece {
    gpunvme_range range;
    Request request;
  };
  std::deque<Piece> pieces;
  std::uint64_t total = 0, next = 0;
  while (next < info.size || !pieces.empty()) {
    if (next < info.size && pieces.size() < kAtATime) {
      std::uint64_t slot = next / kPiece % kAtATime;
      gpunvme_range range{next, memory + slot * kPiece, std::min(kPiece, info.size - next)};
      pieces.push_back({range, submit(storage, range)});
      next += range.bytes;
      continue;
    }
    check(gpunvme_wait(pieces.front().request.get(), UINT64_MAX));
    total += sum(storage, pieces.front().range);
    pieces.pop_front();
  }
  std::printf("%llu bytes, whose sum is %llu\n", static_cast<unsigned long long>(info.size),
      static_cast<unsigned long long>(total));
}

}  // namespace

int main(int count, char **arguments) {
  if (count != 2) {
    std::fprintf(stderr, "async URI\n");
    return 2;
  }
  try {
    run(arguments[1]);
    return 0;
  } catch (const std::exception &e) {
    std::fprintf(stderr, "async: %s\n", e.what());
    return 1;
  }
}
