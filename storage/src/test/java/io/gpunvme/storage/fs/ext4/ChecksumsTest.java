package io.gpunvme.storage.fs.ext4;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.SplittableRandom;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;

class ChecksumsTest {
  @Test
  void crc32cIsTheUsualOneWithoutTheLastInversion() {
    SplittableRandom random = new SplittableRandom(1);
    for (int length = 0; length < 300; length++) {
      byte[] bytes = SourceTree.bytes(random, length);
      CRC32C usual = new CRC32C();
      usual.update(bytes);
      assertThat(Checksums.crc32c(Checksums.START, new Bytes(bytes), 0, length))
          .isEqualTo(~(int) usual.getValue());
    }
  }

  @Test
  void aChecksumGoesOnWhereAnotherEnded() {
    byte[] bytes = SourceTree.bytes(new SplittableRandom(2), 100);
    for (int i = 50; i < 54; i++) {
      bytes[i] = 0;
    }
    ByteBuffer numbers = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    Bytes all = new Bytes(bytes);
    int crc = Checksums.crc32c(Checksums.START, numbers.getInt(0));
    crc = Checksums.crc32c(crc, all, 4, 46);
    crc = Checksums.crc32cZeros(crc, 4);
    crc = Checksums.crc32c(crc, all, 54, 46);
    assertThat(crc).isEqualTo(Checksums.crc32c(Checksums.START, all, 0, 100));

    int crc16 = Checksums.crc16(Checksums.START, numbers.getInt(0));
    crc16 = Checksums.crc16(crc16, all, 4, 96);
    assertThat(crc16).isEqualTo(Checksums.crc16(Checksums.START, all, 0, 100));
  }

  /** The one way to come to a checksum is for short parts, the other for long ones. */
  @Test
  void itGoesOnAfterPartsOfAnyLength() {
    SplittableRandom random = new SplittableRandom(3);
    byte[] bytes = SourceTree.bytes(random, 1000);
    CRC32C usual = new CRC32C();
    usual.update(bytes);
    Bytes all = new Bytes(bytes);
    for (int round = 0; round < 500; round++) {
      int crc = Checksums.START;
      for (int at = 0; at < bytes.length; ) {
        int count = Math.min(bytes.length - at, random.nextInt(200));
        crc = Checksums.crc32c(crc, all, at, count);
        at += count;
      }
      assertThat(crc).isEqualTo(~(int) usual.getValue());
    }
  }

  /** The check value of CRC-16/MODBUS: the same polynomial and start. */
  @Test
  void crc16IsThatOfPolynomial8005() {
    Bytes bytes = new Bytes("123456789".getBytes(US_ASCII));
    assertThat(Checksums.crc16(Checksums.START, bytes, 0, 9)).isEqualTo(0x4B37);
  }
}
