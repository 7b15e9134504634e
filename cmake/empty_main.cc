// Nothing to do: a <module>_links program exists only to be linked (see Module.cmake).
int main() { return 0; }
