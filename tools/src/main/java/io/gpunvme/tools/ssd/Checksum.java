package io.gpunvme.tools.ssd;

import java.lang.foreign.MemorySegment;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** SHA-256 of bytes that come in pieces. Not safe for several threads. */
public final class Checksum {
  private final MessageDigest digest;

  /** Of nothing so far. */
  public Checksum() {
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  /** Takes the next bytes. */
  public void add(byte[] bytes, int offset, int length) {
    digest.update(bytes, offset, length);
  }

  /** Takes the next bytes, at most 2 GiB. */
  public void add(MemorySegment bytes) {
    digest.update(bytes.asByteBuffer());
  }

  /** The checksum in hexadecimal; starts again from nothing. */
  public String hex() {
    return HexFormat.of().formatHex(digest.digest());
  }
}
