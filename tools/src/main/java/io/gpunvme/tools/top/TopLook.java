package io.gpunvme.tools.top;

import java.util.List;

/**
 * What was to be seen at one moment.
 *
 * @param controllers of all processes
 * @param undriven addresses that were asked for and that nobody drives
 * @param problems processes that could not be asked, in words
 */
public record TopLook(
    List<TopController> controllers, List<String> undriven, List<String> problems) {}
