package io.gpunvme.tools.bench;

/**
 * One thing that is measured of a path.
 *
 * @param path by name
 * @param random single blocks of 4 KiB at random, else the file from start to end
 * @param warm the file is in the page cache before, else it is not
 * @param block bytes of each read
 */
record PathCase(String path, boolean random, boolean warm, int block) {
  private static final int MEBIBYTE = 1 << 20;
  private static final int KIBIBYTE = 1 << 10;

  /** Without the block's size. */
  String id() {
    return "paths.%s.%s.%s".formatted(path, random ? "rand4k" : "seq", state());
  }

  /** With it, for the sweep. */
  String sweepId() {
    String size = block >= MEBIBYTE ? block / MEBIBYTE + "m" : block / KIBIBYTE + "k";
    return "paths.%s.%s.%s.%s".formatted(path, random ? "rand" : "seq", state(), size);
  }

  String state() {
    return warm ? "warm" : "cold";
  }

  String unit() {
    return random ? "commands/s" : "GB/s";
  }

  /** What bounds it in the same run. */
  String limit() {
    if (!warm) {
      return random ? DiskCeiling.RANDOM : DiskCeiling.SEQUENTIAL;
    }
    return random ? DiskCeiling.CACHE_RANDOM : DiskCeiling.CACHE;
  }
}
