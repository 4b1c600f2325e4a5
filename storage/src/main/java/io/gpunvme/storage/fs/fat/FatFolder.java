package io.gpunvme.storage.fs.fat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What is in a folder, in its order, and by name. Immutable. */
final class FatFolder {
  /** Longest that a folder may be (specification: "FAT Directory Structure"). */
  static final int MOST_BYTES = 65536 * FolderEntry.BYTES;

  private final List<FolderEntry> entries = new ArrayList<>();
  private final Map<String, FolderEntry> exact = new HashMap<>();
  private final Map<String, FolderEntry> folded = new HashMap<>();
  private byte @Nullable [] label;

  private FatFolder() {}

  /** Reads a folder from all its bytes. */
  static FatFolder parse(byte[] bytes) {
    FatFolder folder = new FatFolder();
    ByteBuffer b = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    LongName longName = new LongName();
    for (int at = 0; at + FolderEntry.BYTES <= bytes.length; at += FolderEntry.BYTES) {
      int first = Byte.toUnsignedInt(b.get(at));
      if (first == FolderEntry.END) {
        break;
      }
      int attributes = b.get(at + FolderEntry.ATTRIBUTES_AT) & FolderEntry.LONG_NAME_MASK;
      if (first == FolderEntry.DELETED) {
        longName.clear();
      } else if (attributes == FolderEntry.LONG_NAME) {
        longName.add(b, at);
      } else {
        folder.add(b, at, attributes, longName.take(ShortName.checksum(b, at)));
      }
    }
    folder.entries.forEach(e -> folder.folded.putIfAbsent(fold(e.shortName()), e));
    return folder;
  }

  private void add(ByteBuffer b, int at, int attributes, @Nullable String name) {
    if ((attributes & FolderEntry.VOLUME) != 0) {
      if (label == null && (attributes & FolderEntry.FOLDER) == 0) {
        label = new byte[ShortName.BYTES];
        b.get(at, label);
      }
      return;
    }
    if (ShortName.isDots(b, at)) {
      return;
    }
    FolderEntry entry = FolderEntry.read(b, at, name);
    entries.add(entry);
    exact.putIfAbsent(entry.name(), entry);
    folded.putIfAbsent(fold(entry.name()), entry);
  }

  /** As names are compared: each UTF-16 unit in upper case, dots at the end left out. */
  private static String fold(String name) {
    int end = name.length();
    while (end > 1 && name.charAt(end - 1) == '.') {
      end--;
    }
    StringBuilder folded = new StringBuilder(end);
    for (int i = 0; i < end; i++) {
      folded.append(Character.toUpperCase(name.charAt(i)));
    }
    return folded.toString();
  }

  /** All but {@code .} and {@code ..}. */
  List<FolderEntry> entries() {
    return entries;
  }

  /** The one of a name, long or short, in any case; null if there is none. */
  @Nullable FolderEntry find(String name) {
    FolderEntry same = exact.get(name);
    return same != null ? same : folded.get(fold(name));
  }

  /** The raw label that a root folder has as an entry; null if it has none. */
  byte @Nullable [] label() {
    return label;
  }
}
