package io.gpunvme.storage.fs.partition;

/**
 * A part of a device.
 *
 * @param number as other systems count them too: from 1; logical partitions of an MBR from 5
 * @param firstByte where it begins on the device
 * @param bytes above 0
 * @param type what it is meant for: a name where it is known, else the number or GUID
 * @param name given by whoever made it; empty in an MBR, which has none
 */
public record Partition(int number, long firstByte, long bytes, String type, String name) {
  @Override
  public String toString() {
    String named = name.isEmpty() ? "" : " '" + name + "'";
    return "#%d (%s%s, %d bytes at %d)".formatted(number, type, named, bytes, firstByte);
  }
}
