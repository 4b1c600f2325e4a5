import io.gpunvme.cli.output.OutputStreams;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import picocli.AutoComplete;
import picocli.CommandLine;
import picocli.CommandLine.Help.Ansi;

/**
 * Writes gpunvme's manual page and what completes its words in a shell, both from the commands
 * themselves. Run with the application's jars on the class path: Pages MAN BASH ZSH VERSION.
 */
final class Pages {
  private static final String NAME = "gpunvme";

  private Pages() {}

  public static void main(String[] args) throws Exception {
    CommandLine tool = tool();
    write(args[0], manual(tool, args[3]));
    write(args[1], AutoComplete.bash(NAME, tool).replaceAll("(?m)[ \t]+$", ""));
    // The script for bash works in zsh, too, once zsh has loaded what makes it one for bash.
    write(
        args[2],
        """
        #compdef gpunvme
        # The words of gpunvme in zsh: those for bash.
        local folder
        autoload -U +X bashcompinit && bashcompinit
        for folder in "${${(%%):-%%x}:A:h}/../../bash-completion/completions" \
        /usr/share/bash-completion/completions; do
          if [[ -r $folder/gpunvme ]]; then
            source $folder/gpunvme
            break
          fi
        done
        (( ! ${+compstate} )) || _bash_complete -o default -F _complete_gpunvme
        """
            .replace("%%", "%"));
  }

  /** The command line, which its package keeps to itself. */
  private static CommandLine tool() throws ReflectiveOperationException {
    PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream());
    Method create =
        Class.forName("io.gpunvme.cli.CommandLineTool")
            .getDeclaredMethod("create", OutputStreams.class, String.class);
    create.setAccessible(true);
    return (CommandLine)
        create.invoke(null, new OutputStreams(nowhere, nowhere, () -> 0, () -> 0), "");
  }

  private static void write(String file, String text) throws Exception {
    Files.createDirectories(Path.of(file).getParent());
    Files.writeString(Path.of(file), text);
  }

  private static String manual(CommandLine tool, String version) {
    StringBuilder page = new StringBuilder();
    page.append(".\\\" Made from gpunvme's own help.\n");
    page.append(".TH GPUNVME 1 \"\" \"gpunvme %s\" \"User Commands\"\n".formatted(version));
    page.append(".SH NAME\ngpunvme \\- NVMe storage that a GPU drives itself\n");
    page.append(".SH SYNOPSIS\n.B gpunvme\n.I COMMAND\n.RI [ OPTION .\\|.\\|.]\n");
    page.append(".SH DESCRIPTION\n");
    text(page, tool);
    page.append(
        ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 128 and its number after a signal.\n");
    page.append(
        ".SH ENVIRONMENT\n"
            + ".TP\n"
            + ".B GPUNVME_JAVA_HOME\n"
            + "another Java to use, of version 25 or newer\n");
    page.append(".TP\n.B GPUNVME_JAVA_OPTS\nmore options for Java\n");
    commands(page, tool, "");
    return page.toString();
  }

  /** A section for each command, in the order of their names. */
  private static void commands(StringBuilder page, CommandLine parent, String before) {
    Map<String, CommandLine> all = parent.getSubcommands();
    for (String name : new TreeSet<>(all.keySet())) {
      CommandLine command = all.get(name);
      String full = before + name;
      page.append(".SH ").append(escaped("COMMAND " + full)).append('\n');
      text(page, command);
      commands(page, command, full + " ");
    }
  }

  /** What --help prints, as it is. */
  private static void text(StringBuilder page, CommandLine command) {
    page.append(".nf\n");
    List<String> lines = command.getUsageMessage(Ansi.OFF).lines().toList();
    lines.forEach(line -> page.append(escaped(line)).append('\n'));
    page.append(".fi\n");
  }

  private static String escaped(String line) {
    String plain = line.stripTrailing().replace("\\", "\\e").replace("-", "\\-");
    return plain.startsWith(".") || plain.startsWith("'") ? "\\&" + plain : plain;
  }
}
