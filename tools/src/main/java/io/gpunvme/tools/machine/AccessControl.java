package io.gpunvme.tools.machine;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** What a port's Access Control Services do to traffic between functions below it. */
public enum AccessControl {
  /** Configuration space beyond its first bytes cannot be read: root can. */
  UNKNOWN,
  /** The port has none, or redirects nothing: peers reach each other directly. */
  DIRECT,
  /** Requests between peers are sent up to the root complex. */
  REDIRECTED;

  private static final int EXTENDED = 0x100;
  private static final int CAPABILITY = 0x000D;
  private static final int CONTROL = 6;
  private static final int HEADER_BYTES = 4;
  private static final int ID_MASK = 0xFFFF;
  private static final int NEXT_SHIFT = 20;
  private static final int NEXT_MASK = 0xFFC;

  /** ACS P2P Request Redirect Enable (PCI Express Base Specification 6.0, 7.7.11.3). */
  private static final int REQUEST_REDIRECT = 1 << 2;

  /** Each capability takes 4 bytes at least, so a longer chain is a loop. */
  private static final int MOST_CAPABILITIES = (4096 - EXTENDED) / 4;

  /** Reads it from configuration space as sysfs shows it. */
  static AccessControl of(byte[] config) {
    if (config.length < EXTENDED) {
      return UNKNOWN;
    }
    ByteBuffer space = ByteBuffer.wrap(config).order(ByteOrder.LITTLE_ENDIAN);
    int at = EXTENDED;
    for (int i = 0; i < MOST_CAPABILITIES && at >= EXTENDED; i++) {
      if (at + HEADER_BYTES > config.length) {
        break;
      }
      int header = space.getInt(at);
      if (header == 0 || header == -1) {
        break;
      }
      if ((header & ID_MASK) == CAPABILITY && at + CONTROL + Short.BYTES <= config.length) {
        return (space.getShort(at + CONTROL) & REQUEST_REDIRECT) != 0 ? REDIRECTED : DIRECT;
      }
      at = header >>> NEXT_SHIFT & NEXT_MASK;
    }
    return DIRECT;
  }
}
