package io.gpunvme.storage.fs.partition;

/**
 * A part of a device.
 *
 * @param number from 1, as in other systems; logical partitions of an MBR from 5
 * @param firstByte its first byte on the device
 * @param bytes above 0
 * @param type its purpose: a name if known, else the number or GUID
 * @param name its label; empty in an MBR, which has no labels
 */
public record Partition(int number, long firstByte, long bytes, String type, String name) {
  @Override
  public String toString() {
    String named = name.isEmpty() ? "" : " '" + name + "'";
    return "#%d (%s%s, %d bytes at %d)".formatted(number, type, named, bytes, firstByte);
  }
}
