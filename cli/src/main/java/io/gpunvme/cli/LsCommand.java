package io.gpunvme.cli;

import io.gpunvme.base.Printable;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.storage.Volume;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileNode.Kind;
import io.gpunvme.storage.fs.FileSystem;
import io.gpunvme.storage.fs.FileSystemException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code gpunvme ls ADDRESS}. */
@Command(
    name = "ls",
    description = {
      "List a folder of an ext4 or FAT32 file system, without the kernel.",
      "The file system is on an SSD, in an image file, or in a partition of either. Nothing is",
      "written."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme ls disk.img",
      "  gpunvme ls -l vfio:0000:01:00.0#1:/models",
      "  gpunvme ls -R sim:file=disk.img:/ --json"
    })
final class LsCommand extends FileCommand {
  /** A limit, so that a malicious file system fills neither the stack nor memory with paths. */
  private static final int DEEPEST = 512;

  @Option(names = "-l", description = "Print kind, size and time of each entry.")
  private boolean details;

  @Option(names = "-R", description = "List subfolders too.")
  private boolean recursive;

  LsCommand(OutputStreams streams) {
    super(streams);
  }

  /** A name with its kind; with {@code -l} also its node. */
  private record Line(String path, String name, Kind kind, long id, @Nullable FileNode node) {
    /** The target of a link; null if this is not a link, or its node was not read. */
    @Nullable String target() {
      FileNode n = node;
      return n != null && kind == Kind.LINK ? n.target() : null;
    }
  }

  private record Listing(String path, List<Line> lines) {}

  @Override
  int run(Volume volume, FileAddress wanted) {
    FileSystem fs = volume.fileSystem();
    List<Listing> listings = new ArrayList<>();
    FileNode node = fs.find(wanted.path(), true);
    if (node.kind() == Kind.FOLDER) {
      // A folder that appears twice contains itself or is in two others: the file system is
      // damaged.
      Set<Long> seen = new HashSet<>(Set.of(node.id()));
      list(fs, wanted.path(), node, 0, seen, listings);
    } else {
      listings.add(
          new Listing(
              wanted.path(),
              List.of(new Line(wanted.path(), wanted.path(), node.kind(), node.id(), node))));
    }
    print(() -> printText(listings), () -> object(volume, wanted, listings));
    return ExitCode.OK;
  }

  private void list(
      FileSystem fs, String path, FileNode folder, int depth, Set<Long> seen, List<Listing> all) {
    List<FileNode.Entry> entries = new ArrayList<>();
    folder.list(entries::add);
    entries.sort(Comparator.comparing(FileNode.Entry::name));
    List<Line> lines = new ArrayList<>(entries.size());
    for (FileNode.Entry e : entries) {
      String child = below(path, e.name());
      FileNode node = details ? fs.find(child, false) : null;
      lines.add(new Line(child, e.name(), e.kind(), e.id(), node));
    }
    all.add(new Listing(path, lines));
    if (!recursive) {
      return;
    }
    for (Line line : lines) {
      if (line.kind() == Kind.FOLDER) {
        if (!seen.add(line.id())) {
          throw new FileSystemException(
              FileSystemException.Kind.CORRUPT, line.path(), "this folder is in several places");
        }
        if (depth == DEEPEST) {
          throw new FileSystemException(
              FileSystemException.Kind.UNSUPPORTED,
              line.path(),
              "folders are more than " + DEEPEST + " deep; list this one by itself");
        }
        list(fs, line.path(), fs.find(line.path(), false), depth + 1, seen, all);
      }
    }
  }

  private void printText(List<Listing> listings) {
    for (Listing listing : listings) {
      if (recursive) {
        out()
            .printf(
                "%s%s:%n",
                listing == listings.getFirst() ? "" : "\n", Printable.of(listing.path()));
      }
      Table table = new Table(0);
      for (Line line : listing.lines()) {
        String name = Printable.of(line.name()) + (line.kind() == Kind.FOLDER ? "/" : "");
        FileNode node = line.node();
        if (!details || node == null) {
          out().println(name);
          continue;
        }
        String target = line.target();
        table.row(
            kind(line.kind()),
            line.kind() == Kind.FILE ? Sizes.format(node.size()) : "-",
            node.modified(),
            target == null ? name : name + " -> " + Printable.of(target));
      }
      table.print(out());
    }
  }

  private static Map<String, Object> object(
      Volume volume, FileAddress wanted, List<Listing> listings) {
    List<Map<String, Object>> entries = new ArrayList<>();
    for (Listing listing : listings) {
      for (Line line : listing.lines()) {
        Map<String, Object> one = new LinkedHashMap<>();
        one.put("path", line.path());
        one.put("kind", kind(line.kind()));
        one.put("id", line.id());
        FileNode node = line.node();
        if (node != null) {
          one.put("bytes", node.size());
          one.put("modified", node.modified());
          one.put("target", line.target());
        }
        entries.add(one);
      }
    }
    Map<String, Object> object = volume(volume, wanted);
    object.put("entries", entries);
    return object;
  }
}
