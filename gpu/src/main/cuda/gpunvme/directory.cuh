#pragma once
// Files by their paths. The host has put them into a table (KernelStorage.directory); kernels look them up, or count through them.
#include "file.cuh"

namespace gpunvme {

// Where a path may be: in the slot that its hash says, or in one of the next.
struct DirectorySlot {
  u32 hash;
  u32 file;  // its number, or kNone: no path is here, nor in the slots behind for the sake of this one

  static constexpr u32 kNone = ~0u;
};
static_assert(sizeof(DirectorySlot) == 8, "layout shared with the host");

// The files below a directory. A path is its bytes, UTF-8 as a rule, with '/' between names: those from the directory on, so
// "train/0001.bin" for "/data/train/0001.bin" of the directory "/data". It is compared byte for byte, so case counts, on FAT32,
// too; "." and ".." are names like others, which no file has.
struct alignas(64) DeviceDirectory {
  u32 count;                   // files
  u32 longest;                 // bytes of the longest path
  u32 slot_mask;               // how many slots there are, a power of two, less 1
  u32 seed;                    // of the hash
  u32 probes;                  // how many slots a path may be in; at least 1
  u32 reserved0;
  const DeviceFile* files;     // in the order of their paths, compared as unsigned bytes
  const DirectorySlot* slots;
  const u32* ends;             // of each file's path in `paths`, which begins where the last one ends
  const char* paths;
  u64 reserved1;

  // The file of a path of so many bytes; null if there is none. One slash in front changes nothing. Its number is the
  // difference to `files`.
  GPUNVME_FN const DeviceFile* find(const char* path, u64 bytes) const {
    if (bytes != 0 && path[0] == '/') {
      path++;
      bytes--;
    }
    if (bytes > longest) {
      return nullptr;
    }
    u32 hash = hash_of(path, static_cast<u32>(bytes));
    GPUNVME_ROLLED
    for (u32 i = 0; i < probes; i++) {
      DirectorySlot s = slots[(hash + i) & slot_mask];
      if (s.file == DirectorySlot::kNone) {
        break;
      }
      if (s.hash == hash && is(s.file, path, static_cast<u32>(bytes))) {
        return files + s.file;
      }
    }
    return nullptr;
  }

  // The same for a path that ends before its first byte 0.
  GPUNVME_FN const DeviceFile* find(const char* path) const {
    u64 bytes = 0;
    GPUNVME_ROLLED
    while (bytes <= longest + 1ull && path[bytes] != 0) {
      bytes++;
    }
    return find(path, bytes);
  }

  // The path of the file of a number below `count`, which no byte 0 ends, and its bytes.
  GPUNVME_FN const char* path(u32 number, u32& bytes) const {
    u32 begin = number == 0 ? 0 : ends[number - 1];
    bytes = ends[number] - begin;
    return paths + begin;
  }

 private:
  // FNV-1a, its halves folded.
  GPUNVME_FN u32 hash_of(const char* path, u32 bytes) const {
    u32 hash = 2166136261u ^ seed;
    GPUNVME_ROLLED
    for (u32 i = 0; i < bytes; i++) {
      hash = (hash ^ static_cast<u8>(path[i])) * 16777619u;
    }
    return hash ^ hash >> 16;
  }

  GPUNVME_FN bool is(u32 number, const char* path, u32 bytes) const {
    u32 length;
    const char* there = this->path(number, length);
    if (length != bytes) {
      return false;
    }
    GPUNVME_ROLLED
    for (u32 i = 0; i < bytes; i++) {
      if (there[i] != path[i]) {
        return false;
      }
    }
    return true;
  }
};
static_assert(sizeof(DeviceDirectory) == 64, "layout shared with the host");

}  // namespace gpunvme
