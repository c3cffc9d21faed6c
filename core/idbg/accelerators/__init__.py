"""What can the hardware not do: where is that written, how is it read, edited and watched?"""
