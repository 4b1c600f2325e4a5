package io.gpunvme.cli;

import io.gpunvme.base.Printable;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.storage.Volume;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileNode.Kind;
import io.gpunvme.storage.fs.FileSystem;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;

/** {@code gpunvme stat ADDRESS}. */
@Command(
    name = "stat",
    description = {
      "Show what a file system stores about a file, a folder or a link, and about itself.",
      "Reads without the kernel, and does not follow links."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme stat disk.img",
      "  gpunvme stat vfio:0000:01:00.0#1:/models/model.safetensors --json"
    })
final class StatCommand extends FileCommand {
  StatCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run(Volume volume, FileAddress wanted) {
    FileNode node = volume.fileSystem().find(wanted.path(), false);
    List<FileExtent> extents = node.kind() == Kind.FILE ? node.extents() : List.of();
    print(
        () -> printText(volume, wanted, node, extents),
        () -> object(volume, wanted, node, extents));
    return ExitCode.OK;
  }

  private void printText(
      Volume volume, FileAddress wanted, FileNode node, List<FileExtent> extents) {
    out().println(Printable.of(wanted.path()));
    Table table = new Table(2);
    table.row("kind", kind(node.kind()));
    if (node.kind() == Kind.LINK) {
      table.row("target", Printable.of(node.target()));
    }
    table.row("size", "%d bytes (%s)".formatted(node.size(), Sizes.format(node.size())));
    table.row("modified", node.modified());
    table.row("id", node.id());
    node.details().forEach((key, value) -> table.row(key, Printable.of(value)));
    if (node.kind() == Kind.FILE) {
      table.row("extents", extents.size());
    }
    table.print(out());
    FileSystem fs = volume.fileSystem();
    out().println("on");
    Table on = new Table(2);
    on.row("device", wanted.device());
    var partition = volume.partition();
    if (partition != null) {
      on.row("partition", partition);
    }
    on.row("file system", fs.type() + (fs.label().isEmpty() ? "" : " '" + fs.label() + "'"));
    on.row("allocated in", Sizes.format(fs.blockSize()));
    on.row("read by", volume.how());
    on.print(out());
  }

  private static Map<String, Object> object(
      Volume volume, FileAddress wanted, FileNode node, List<FileExtent> extents) {
    Map<String, Object> object = volume(volume, wanted);
    object.put("kind", kind(node.kind()));
    object.put("target", node.kind() == Kind.LINK ? node.target() : null);
    object.put("bytes", node.size());
    object.put("modified", node.modified());
    object.put("id", node.id());
    object.put("details", new LinkedHashMap<>(node.details()));
    object.put("extents", node.kind() == Kind.FILE ? extents.size() : null);
    return object;
  }
}
