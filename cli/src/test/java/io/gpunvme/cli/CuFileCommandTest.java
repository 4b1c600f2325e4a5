package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cli.output.OutputStreams;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/** What is Java's of {@code cufile}; test.d/cufile-command.sh tests the rest. */
class CuFileCommandTest {
  @Test
  void itsOptionsAreThoseOfTheScript() throws IOException {
    String script = Files.readString(Path.of("../scripts/cufile"));
    String loop = script.replaceAll("(?s).*\nwhile \\[ \\$# -gt 0 \\]; do\n(.*?)\ndone\n.*", "$1");
    Set<String> taken = new TreeSet<>();
    Matcher label = Pattern.compile("(?m)^    (-[^*)]*)\\)").matcher(loop);
    while (label.find()) {
      taken.addAll(Set.of(label.group(1).split(" \\| ")));
    }
    taken.remove("--");
    PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream());
    CommandLine command =
        new CommandLine(new CuFileCommand(new OutputStreams(nowhere, nowhere, () -> 0, () -> 0)));
    assertThat(taken).isEqualTo(new TreeSet<>(command.getCommandSpec().optionsMap().keySet()));
  }

  @Test
  void withoutItsScriptItSaysWhatToCall() {
    Cli.run("cufile", "--", "ls", "-l").refused("./gpunvme");
  }
}
