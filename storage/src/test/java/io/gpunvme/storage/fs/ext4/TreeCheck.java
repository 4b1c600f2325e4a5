package io.gpunvme.storage.fs.ext4;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileNode.Entry;
import io.gpunvme.storage.fs.FileNode.Kind;
import io.gpunvme.storage.fs.FileSystem;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;

/** Compares all that is in a file system with what is in a folder of the running system. */
final class TreeCheck {
  private static final Set<String> OWN = Set.of("lost+found");

  private final FileSystem ours;
  private final boolean times;
  private int files;
  private long bytes;

  private TreeCheck(FileSystem ours, boolean times) {
    this.ours = ours;
    this.times = times;
  }

  /**
   * Fails where they differ.
   *
   * @param times whether times of change are the same too, to the second
   * @return how many files were compared
   */
  static int compare(FileSystem ours, Path theirs, boolean times) throws IOException {
    TreeCheck check = new TreeCheck(ours, times);
    check.folder("", theirs);
    assertThat(check.bytes).isPositive();
    return check.files;
  }

  private void folder(String path, Path theirs) throws IOException {
    Map<String, Entry> entries = new TreeMap<>();
    ours.find(path, false)
        .list(entry -> assertThat(entries.put(entry.name(), entry)).as(entry.name()).isNull());
    if (path.isEmpty()) {
      entries.keySet().removeAll(OWN);
    }
    Map<String, Path> expected = new TreeMap<>();
    try (Stream<Path> all = Files.list(theirs)) {
      all.forEach(file -> expected.put(text(file), file));
    }
    expected.keySet().removeAll(OWN);
    assertThat(entries.keySet()).as("names in '%s'", path).isEqualTo(expected.keySet());
    for (Map.Entry<String, Path> entry : expected.entrySet()) {
      String child = path + "/" + entry.getKey();
      FileNode node = ours.find(child, false);
      assertThat(node.id()).isEqualTo(entries.get(entry.getKey()).id());
      assertThat(node.kind()).as(child).isEqualTo(entries.get(entry.getKey()).kind());
      compare(child, node, entry.getValue());
    }
  }

  /** As {@link Names} shows it: Java shows bytes that are no text in its own way. */
  private static String text(Path file) {
    String name = file.getFileName().toString();
    if (name.startsWith("bad")) {
      return "bad\\xff\\xfename";
    }
    return name.replace("\\x41", "\\x5cx41");
  }

  private void compare(String path, FileNode node, Path theirs) throws IOException {
    if (Files.isSymbolicLink(theirs)) {
      assertThat(node.kind()).as(path).isEqualTo(Kind.LINK);
      assertThat(node.target()).as(path).isEqualTo(Files.readSymbolicLink(theirs).toString());
    } else if (Files.isDirectory(theirs)) {
      assertThat(node.kind()).as(path).isEqualTo(Kind.FOLDER);
      folder(path, theirs);
    } else if (Files.isRegularFile(theirs)) {
      assertThat(node.kind()).as(path).isEqualTo(Kind.FILE);
      assertThat(node.size()).as(path).isEqualTo(Files.size(theirs));
      if (node.size() > 1L << 30) {
        compareParts(path, node, theirs);
      } else {
        assertThat(digest(node)).as(path).isEqualTo(digest(theirs));
      }
      bytes += node.size();
      files++;
    } else {
      assertThat(node.kind()).as(path).isEqualTo(Kind.OTHER);
    }
    attributes(path, node, theirs);
  }

  private void attributes(String path, FileNode node, Path theirs) throws IOException {
    Map<String, Object> unix =
        Files.readAttributes(
            theirs, "unix:mode,uid,gid,lastModifiedTime", LinkOption.NOFOLLOW_LINKS);
    String mode = node.details().get("mode").substring(1).replaceAll("[st]", "x");
    assertThat(mode.replaceAll("[ST]", "-"))
        .as(path)
        .isEqualTo(
            PosixFilePermissions.toString(
                Files.getPosixFilePermissions(theirs, LinkOption.NOFOLLOW_LINKS)));
    assertThat(node.details()).as(path).containsEntry("uid", unix.get("uid").toString());
    assertThat(node.details()).as(path).containsEntry("gid", unix.get("gid").toString());
    if (times) {
      long seconds =
          Files.getLastModifiedTime(theirs, LinkOption.NOFOLLOW_LINKS).toInstant().getEpochSecond();
      assertThat(node.modified().getEpochSecond()).as(path).isEqualTo(seconds);
    }
  }

  /** What is in it, and around each border of an extent; holes are not read whole. */
  private static void compareParts(String path, FileNode node, Path theirs) throws IOException {
    long at = 0;
    try (var channel = Files.newByteChannel(theirs)) {
      for (FileExtent extent : node.extents()) {
        assertThat(extent.fileOffset()).as(path).isEqualTo(at);
        at = extent.end();
        for (long start : new long[] {extent.fileOffset(), extent.end() - 1000}) {
          byte[] part = new byte[(int) Math.min(20_000, node.size() - Math.max(0, start))];
          node.read(Math.max(0, start), MemorySegment.ofArray(part));
          ByteBuffer expected = ByteBuffer.allocate(part.length);
          channel.position(Math.max(0, start));
          while (expected.hasRemaining() && channel.read(expected) > 0) {}
          assertThat(part).as("%s at %d", path, start).isEqualTo(expected.array());
        }
      }
    }
    assertThat(at).as(path).isEqualTo(node.size());
  }

  static String digest(FileNode node) {
    MessageDigest digest = sha256();
    byte[] buffer = buffer(node.size());
    for (long at = 0; at < node.size(); ) {
      int n = (int) Math.min(buffer.length, node.size() - at);
      node.read(at, MemorySegment.ofArray(buffer).asSlice(0, n));
      digest.update(buffer, 0, n);
      at += n;
    }
    return HexFormat.of().formatHex(digest.digest());
  }

  static String digest(Path file) throws IOException {
    MessageDigest digest = sha256();
    byte[] buffer = buffer(Files.size(file));
    try (InputStream in = Files.newInputStream(file)) {
      for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
        digest.update(buffer, 0, n);
      }
    }
    return HexFormat.of().formatHex(digest.digest());
  }

  /** Of one byte at least: most files are short, and 1 MiB for each is all that takes time. */
  private static byte[] buffer(long size) {
    return new byte[(int) Math.clamp(size, 1, 1 << 20)];
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }

  /** Paths of all files. */
  static List<String> files(FileSystem fs) {
    List<String> found = new ArrayList<>();
    collect(fs, "", found, new TreeSet<>());
    return found;
  }

  private static void collect(FileSystem fs, String path, List<String> to, Set<Long> seen) {
    FileNode folder = fs.find(path, false);
    assertThat(seen.add(folder.id())).isTrue();
    List<Entry> entries = new ArrayList<>();
    folder.list(entries::add);
    for (Entry entry : entries) {
      String child = path + "/" + entry.name();
      if (entry.kind() == Kind.FOLDER) {
        collect(fs, child, to, seen);
      } else if (entry.kind() == Kind.FILE) {
        to.add(child);
      }
    }
  }
}
