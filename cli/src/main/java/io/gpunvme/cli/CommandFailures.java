package io.gpunvme.cli;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Printable;
import io.gpunvme.base.Reason;
import io.gpunvme.cli.output.Json;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.gpu.queue.DirtyPagesException;
import io.gpunvme.gpu.queue.RowsFailedException;
import io.gpunvme.models.format.FormatException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.storage.layer.LayerException;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.tools.bench.BenchException;
import io.gpunvme.tools.graph.GraphException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.UnmatchedArgumentException;

/** Prints the message of a command that failed, and returns its exit code. */
final class CommandFailures {
  private final OutputStreams streams;
  private final List<String> args;

  CommandFailures(OutputStreams streams, List<String> args) {
    this.streams = streams;
    this.args = args;
  }

  /** The command line could not be understood. */
  int usage(ParameterException e, String[] theArgs) {
    String name = e.getCommandLine().getCommandSpec().qualifiedName();
    String message = text(e);
    if (e instanceof UnmatchedArgumentException unknown
        && e.getCommandLine().getParent() == null
        && !unknown.isUnknownOption()) {
      message = "unknown command '" + unknown.getUnmatched().getFirst() + "'";
    }
    String line = message.replaceFirst("^Error: ", "") + " (see " + name + " --help)";
    report(name, line, ExitCode.USAGE, e);
    return ExitCode.USAGE;
  }

  /** The command was understood and failed. */
  int failure(Exception e, CommandLine command, @Nullable ParseResult result) {
    int code = code(e);
    report(command.getCommandSpec().qualifiedName(), message(e), code, e);
    return code;
  }

  /** Java's heap is full: the command is over, and what it had is free again. */
  int heap(OutOfMemoryError e) {
    String message =
        "Java's heap of %d MiB is too small for this; GPUNVME_JAVA_OPTS=-Xmx2g gives 2 GiB (%s)"
            .formatted(Runtime.getRuntime().maxMemory() >> 20, e.getMessage());
    report("gpunvme", message, ExitCode.FAILURE, e);
    return ExitCode.FAILURE;
  }

  private static int code(Exception e) {
    boolean usage =
        e instanceof UsageException
            || e instanceof InvalidRequestException
            || e instanceof NoSuchFileException
            || e instanceof InvalidPathException
            || e instanceof io.gpunvme.storage.fs.FileSystemException fs
                && fs.kind() == io.gpunvme.storage.fs.FileSystemException.Kind.NOT_FOUND;
    return usage ? ExitCode.USAGE : ExitCode.FAILURE;
  }

  private static String message(Exception e) {
    return switch (e) {
      case NoSuchFileException missing -> missing.getFile() + ": no such file or folder";
      case AccessDeniedException denied -> denied.getFile() + ": permission denied";
      case FileAlreadyExistsException there -> there.getFile() + " exists";
      case FileSystemException other -> other.getFile() + ": " + Reason.of(other);
      case UsageException own -> text(own);
      case InvalidRequestException request -> text(request);
      case NvmeException nvme -> text(nvme);
      case StorageException storage -> text(storage);
      case LayerException layer -> text(layer);
      case io.gpunvme.storage.fs.FileSystemException fs -> text(fs);
      case FormatException format -> text(format);
      case BenchException bench -> text(bench);
      case RowsFailedException rows -> text(rows);
      case DirtyPagesException dirty -> text(dirty);
      case GraphException graph -> text(graph);
      case PosixException posix -> text(posix);
      case CudaException cuda -> text(cuda);
      case CudaNotFoundException missing -> text(missing);
      case InvalidPathException path -> text(path);
      case IOException io -> Reason.of(io);
      default -> "unexpected " + e + "; please report it, with the output of --debug";
    };
  }

  private static String text(Exception e) {
    String message = e.getMessage();
    return message == null ? e.getClass().getSimpleName() : message;
  }

  /** Prints one line, and with {@code --json} an object on standard output. */
  private void report(String command, String message, int code, Throwable e) {
    if (Ending.begun()) {
      return;
    }
    String line = Printable.of(message.replaceAll("\\s*\\R\\s*", "; "));
    streams.err().println(command + ": " + line);
    if (args.contains("--debug")) {
      e.printStackTrace(streams.err());
    }
    if (args.contains("--json")) {
      Map<String, Object> object = new LinkedHashMap<>();
      object.put("error", line);
      object.put("exit_code", code);
      Json.print(streams.out(), object);
    }
  }
}
