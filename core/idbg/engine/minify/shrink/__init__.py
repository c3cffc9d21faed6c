"""How small can what is left become: settings, values, shapes, dtypes and constants, while it fails as it did?"""
