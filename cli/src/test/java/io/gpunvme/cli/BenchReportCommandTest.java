package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code bench report}. */
class BenchReportCommandTest {
  @TempDir private Path folder;
  private Path page;

  @BeforeEach
  void writeAResult() throws IOException {
    page = folder.resolve("page.html");
    Files.writeString(
        folder.resolve("run.json"),
        """
        {"machine": {"gpu": "some GPU"}, "commit": "c", "date": "2001-02-03",
         "results": [{"id": "queue.qd1", "unit": "ns", "median": 3000, "verified": true}]}
        """);
  }

  @Test
  void writesThePage() throws IOException {
    Cli.Result result = Cli.run("bench", "report", folder, "--out", page).succeeded();

    assertThat(result.out()).startsWith(page + ": 1 results of 1 files, ");
    assertThat(Files.readString(page))
        .startsWith("<!DOCTYPE html>")
        .contains("some GPU", "queue.<wbr>qd1", "3 µs")
        .endsWith("</html>\n");
  }

  @Test
  void asJson() throws IOException {
    JsonObject json =
        Cli.run("bench", "report", folder, "--out", page, "--open", "no", "--json")
            .succeeded()
            .json();

    assertThat(json.get("page").getAsString()).isEqualTo(page.toString());
    assertThat(json.get("bytes").getAsLong()).isEqualTo(Files.size(page));
    assertThat(json.get("results").getAsInt()).isEqualTo(1);
  }

  @Test
  void aBadFileLeavesNoPage() throws IOException {
    Files.writeString(folder.resolve("bad.json"), "{");

    Cli.run("bench", "report", folder, "--out", page)
        .failed(ExitCode.FAILURE, folder.resolve("bad.json") + ": not JSON at line 1");
    assertThat(page).doesNotExist();
  }

  @Test
  void wrongUsage() {
    Cli.run("bench", "report", folder.resolve("missing"), "--out", page).refused("missing");
    Cli.run("bench", "report", folder, "--open", "perhaps").refused("yes, no");
    Cli.run("bench", "report", "--out", page).refused("DIR");
    Cli.run("bench").refused("report");
  }
}
