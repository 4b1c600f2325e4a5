package io.gpunvme.storage.fs.partition;

import java.nio.ByteBuffer;
import java.util.Locale;
import java.util.Map;

/** What partitions are meant for, by the numbers that say so. */
final class PartitionTypes {
  private static final String UNUSED = "00000000-0000-0000-0000-000000000000";

  // UEFI 2.10, table 5.7; systemd's Discoverable Partitions Specification; Microsoft.
  private static final Map<String, String> GPT =
      Map.ofEntries(
          Map.entry("C12A7328-F81F-11D2-BA4B-00A0C93EC93B", "EFI system"),
          Map.entry("21686148-6449-6E6F-744E-656564454649", "BIOS boot"),
          Map.entry("0FC63DAF-8483-4772-8E79-3D69D8477DE4", "Linux files"),
          Map.entry("4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709", "Linux root (x86-64)"),
          Map.entry("B921B045-1DF0-41C3-AF44-4C6F280D3FAE", "Linux root (arm64)"),
          Map.entry("933AC7E1-2EB4-4F13-B844-0E14E2AEF915", "Linux home"),
          Map.entry("0657FD6D-A4AB-43C4-84E5-0933C84B4F4F", "Linux swap"),
          Map.entry("E6D6D379-F507-44C2-A23C-238F2A3DF928", "Linux LVM"),
          Map.entry("A19D880F-05FC-4D3B-A006-743F0F84911E", "Linux RAID"),
          Map.entry("EBD0A0A2-B9E5-4433-87C0-68B6B72699C7", "Microsoft data"),
          Map.entry("E3C9E316-0B5C-4DB8-817D-F92DF00215AE", "Microsoft reserved"));

  private static final Map<Integer, String> MBR =
      Map.ofEntries(
          Map.entry(0x01, "FAT12"),
          Map.entry(0x04, "FAT16"),
          Map.entry(0x06, "FAT16"),
          Map.entry(0x07, "NTFS or exFAT"),
          Map.entry(0x0B, "FAT32"),
          Map.entry(0x0C, "FAT32"),
          Map.entry(0x0E, "FAT16"),
          Map.entry(0x82, "Linux swap"),
          Map.entry(0x83, "Linux files"),
          Map.entry(0x8E, "Linux LVM"),
          Map.entry(0xEF, "EFI system"),
          Map.entry(0xFD, "Linux RAID"));

  private PartitionTypes() {}

  /** The GUID at a place: its first three parts are little-endian (UEFI 2.10, appendix A). */
  static String guid(ByteBuffer b, int at) {
    long tail = Long.reverseBytes(b.getLong(at + 8));
    return String.format(
        Locale.ROOT,
        "%08X-%04X-%04X-%04X-%012X",
        b.getInt(at),
        b.getShort(at + 4),
        b.getShort(at + 6),
        tail >>> 48,
        tail & 0xFFFF_FFFF_FFFFL);
  }

  static boolean isUnused(String guid) {
    return guid.equals(UNUSED);
  }

  static String gpt(String guid) {
    return GPT.getOrDefault(guid, guid);
  }

  static String mbr(int type) {
    return MBR.getOrDefault(type, String.format(Locale.ROOT, "type %02Xh", type));
  }
}
