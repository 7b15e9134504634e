// Nothing to do: a <room>_links program exists only to be linked (see Room.cmake).
int main() { return 0; }
