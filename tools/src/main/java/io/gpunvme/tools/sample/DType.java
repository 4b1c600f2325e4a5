package io.gpunvme.tools.sample;

/** An element type of the sample, and how random words are made into plausible elements of it. */
enum DType {
  F64(8, 0x800F_FFFF_FFFF_FFFFL, 0x3FE0_0000_0000_0000L),
  I64(8, 0x0000_0000_0000_FFFFL, 0),
  U64(8, 0xFFFF_FFFF_FFFF_FFFFL, 0),
  F32(4, 0x807F_FFFF_807F_FFFFL, 0x3F00_0000_3F00_0000L),
  I32(4, 0x0000_FFFF_0000_FFFFL, 0),
  BF16(2, 0x807F_807F_807F_807FL, 0x3F00_3F00_3F00_3F00L),
  F16(2, 0x83FF_83FF_83FF_83FFL, 0x3800_3800_3800_3800L),
  BOOL(1, 0x0101_0101_0101_0101L, 0),
  F8_E4M3(1, 0x8787_8787_8787_8787L, 0x3030_3030_3030_3030L),
  F8_E5M2(1, 0x8383_8383_8383_8383L, 0x3838_3838_3838_3838L),
  I8(1, 0xFFFF_FFFF_FFFF_FFFFL, 0),
  U8(1, 0xFFFF_FFFF_FFFF_FFFFL, 0);

  private final int bytes;
  private final long keep;
  private final long set;

  /**
   * @param bytes per element
   * @param keep bits of a random word that stay: for floats sign and mantissa
   * @param set bits that are set: for floats the exponent of 0.5, so that every value is finite
   */
  DType(int bytes, long keep, long set) {
    this.bytes = bytes;
    this.keep = keep;
    this.set = set;
  }

  int bytes() {
    return bytes;
  }

  /** Eight bytes of elements, little endian, from a random word. */
  long elements(long random) {
    return (random & keep) | set;
  }
}
