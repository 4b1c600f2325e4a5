/** The gpunvme command. */
module io.gpunvme.cli {
  requires static transitive org.jspecify;
  requires io.gpunvme.tools;
  requires com.google.gson;
  requires info.picocli;
  requires me.tongfei.progressbar;

  opens io.gpunvme.cli to
      info.picocli;
}
